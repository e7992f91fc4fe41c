/**
 * A bounded number of calls at a time, the others in order of arrival: the queue of an application whose client has none. Without it
 * such clients pile up calls whose callers no longer wait.
 */
import { type CreateClient, type CallOutcome, QUEUE_TIMEOUT_MS } from '../client.ts';

/** As many as our own throttle lets in at a time. */
const WORKERS = 64;

interface Waiting {
  readonly leavesAt: number;
  begin(): void;
  giveUp(): void;
}

export function withWorkerPool(createClient: CreateClient): CreateClient {
  return (surroundings) => {
    const client = createClient(surroundings);
    const { clock } = surroundings;
    const queue: Waiting[] = [];
    let working = 0;
    const free = (): void => {
      working--;
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        if (next.leavesAt > clock.now()) {
          next.begin();
          return;
        }
        next.giveUp();
      }
    };
    const work = async (call: () => Promise<CallOutcome>): Promise<CallOutcome> => {
      working++;
      try {
        return await call();
      } finally {
        free();
      }
    };
    return {
      call(deadlineAt, send) {
        const call = (): Promise<CallOutcome> => client.call(deadlineAt, send);
        if (working < WORKERS) return work(call);
        return new Promise((resolve, reject) => {
          queue.push({
            leavesAt: clock.now() + QUEUE_TIMEOUT_MS,
            begin: () => void work(call).then(resolve, reject),
            giveUp: () => resolve('gave-up'),
          });
        });
      },
    };
  };
}
