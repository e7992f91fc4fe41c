/** The steps of a check, how they name targets and settings, and a runner that turns the errors of a step into findings. */
import { formatSettingName } from '../../config/load/problems.ts';
import type { SettingKey } from '../../config/schema/schema.ts';
import { DEFAULT_NAME } from '../../config/schema/schema-routes.ts';
import { errorCodeOf } from '../../platform/connection-faults.ts';
import { abortable, type Clock } from '../../platform/clock.ts';

export type CheckStepName =
  | 'configuration'
  | 'limits'
  | 'file'
  | 'connect'
  | 'tls'
  | 'discovery'
  | 'assertion'
  | 'token'
  | 'scope'
  | 'lifetime'
  | 'clock'
  | 'probe'
  | 'fleet'
  | 'verdict'
  | 'refusals';

/** `fail`: it will not work. `warn`: it works, with a problem. `skip`: not checked. */
export type CheckOutcome = 'ok' | 'warn' | 'fail' | 'skip';

/** Neither text may contain a secret or a token. */
export interface CheckFinding {
  readonly outcome: CheckOutcome;
  readonly detail: string;
  /** What to do next: a setting, a file or a person to ask. */
  readonly advice?: string | undefined;
}

export interface StepResult<T> extends CheckFinding {
  readonly value?: T;
}

export interface CheckStep extends CheckFinding {
  readonly step: CheckStepName;
  /** `token endpoint`, `upstream` or a setting. */
  readonly target: string;
  /** Duration in milliseconds; 0 when it follows from another step. */
  readonly ms: number;
}

export interface CheckContext {
  readonly clock: Clock;
  /** Aborted by the user. */
  readonly stop: AbortSignal;
  /** Aborted by `stop` and by the timeout of the whole check. */
  readonly signal: AbortSignal;
}

export class StepRunner {
  readonly #target: string;
  readonly #context: CheckContext;
  readonly #steps: CheckStep[] = [];

  constructor(target: string, context: CheckContext) {
    this.#target = target;
    this.#context = context;
  }

  get steps(): readonly CheckStep[] {
    return this.#steps;
  }

  /** @param ms how long it took. Default: it follows from another step */
  record(step: CheckStepName, { outcome, detail, advice }: CheckFinding, ms = 0): void {
    this.#steps.push({ step, target: this.#target, outcome, ms: Math.round(ms * 10) / 10, detail, advice });
  }

  skip(steps: readonly CheckStepName[], why: string): void {
    for (const step of steps) this.record(step, { outcome: 'skip', detail: why });
  }

  /** Runs a step and returns its value, if there is one. Never rejects: an error becomes a finding. */
  async run<T>(step: CheckStepName, run: () => Promise<StepResult<T>>): Promise<T | undefined> {
    const { clock, signal } = this.#context;
    const startedAt = clock.now();
    const find = async (): Promise<StepResult<T>> => {
      try {
        return await abortable(run(), signal);
      } catch (error) {
        return this.#explain(error);
      }
    };
    const { value, ...finding } = signal.aborted ? this.#explain(undefined) : await find();
    this.record(step, finding, clock.now() - startedAt);
    return value;
  }

  #explain(error: unknown): StepResult<never> {
    const { stop, signal } = this.#context;
    if (stop.aborted) return { outcome: 'skip', detail: 'interrupted' };
    const advice = `ask the operator of the ${this.#target}`;
    if (signal.aborted) return { outcome: 'fail', detail: 'not finished within the time limit of check', advice };
    // The message of an unexpected error may quote the request.
    return { outcome: 'fail', detail: `failed unexpectedly (${errorCodeOf(error)})`, advice };
  }
}

export type NameSetting = (key: SettingKey) => string;

/** For one entry of `credentials` or `routes`; `default` is the top level. */
export function createSettingNamer(kind: 'credential' | 'route', name: string): NameSetting {
  if (name === DEFAULT_NAME) return formatSettingName;
  return (key) => `${key.replace(/^(?:auth|upstream)\./, '')} of the ${kind} ${name}`;
}

/** The target column of the report: `upstream`, `upstream quotes`. */
export function formatTarget(what: string, name: string): string {
  return name === DEFAULT_NAME ? what : `${what} ${name}`;
}
