/** undici's RetryAgent with its defaults, except that POST and 429 are retried as often as in the other clients. */
import { Dispatcher, RetryAgent } from 'undici';
import {
  type SimulatedResponse,
  CallerGone,
  type CreateClient,
  type CallOutcome,
  RETRIES,
  type Send,
} from '../client.ts';

export const createUndiciRetry: CreateClient = () => {
  const agent = new RetryAgent(new SimulatedDispatcher(), { methods: ['POST'], maxRetries: RETRIES });
  return {
    call: (_deadlineAt, send) =>
      new Promise((resolve) => {
        agent.dispatch({ path: '/', method: 'POST', opaque: send } as SimulatedOptions, new Caller(resolve));
      }),
  };
};

/** The options of a dispatch reach the inner dispatcher unchanged, and so carry the call. */
interface SimulatedOptions extends Dispatcher.DispatchOptions {
  readonly opaque: Send;
}

/** The network, in place of an Agent. */
class SimulatedDispatcher extends Dispatcher {
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const controller = new SimulatedController();
    handler.onRequestStart?.(controller, {});
    (options as SimulatedOptions).opaque().then(
      (response) => {
        deliverResponse(response, controller, handler);
      },
      (error: unknown) => {
        // A caller that leaves aborts its request, so that nothing is retried.
        controller.aborted = true;
        handler.onResponseError?.(controller, error as Error);
      },
    );
    return true;
  }
}

function deliverResponse(
  response: SimulatedResponse,
  controller: SimulatedController,
  handler: Dispatcher.DispatchHandler,
): void {
  handler.onResponseStart?.(controller, response.status, { ...response.headers }, '');
  // The end of the response is delivered when the reader resumes.
  controller.whenResumed(() => {
    try {
      handler.onResponseEnd?.(controller, {});
    } catch (error) {
      // As undici's own Request does; RetryHandler counts on it.
      handler.onResponseError?.(controller, error as Error);
    }
  });
}

class SimulatedController implements Dispatcher.DispatchController {
  aborted = false;
  readonly reason = null;
  readonly rawHeaders = [];
  readonly rawTrailers = [];
  paused = false;
  #then: (() => void) | undefined;

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    const then = this.#then;
    this.#then = undefined;
    then?.();
  }

  abort(): void {
    this.aborted = true;
    this.#then = undefined;
  }

  whenResumed(then: () => void): void {
    if (this.paused) this.#then = then;
    else then();
  }
}

class Caller implements Dispatcher.DispatchHandler {
  readonly #resolve: (outcome: CallOutcome) => void;
  #status = 0;

  constructor(resolve: (outcome: CallOutcome) => void) {
    this.#resolve = resolve;
  }

  onRequestStart(): void {
    // Nothing to do before the response.
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  onResponseData(): void {
    // The simulated responses have no body.
  }

  onResponseEnd(): void {
    this.#resolve(this.#status < 300 ? 'served' : 'refused-to-caller');
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#resolve(error instanceof CallerGone ? 'gave-up' : 'refused-to-caller');
  }
}
