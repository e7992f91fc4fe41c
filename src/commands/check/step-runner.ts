/**
 * The steps of a check: what one found, how long it took, and what to do about it. A walk takes them one after the other towards one
 * target, and bounds each. What the steps look at is told in their own files, how they are printed in report.ts.
 */
import type { Clock } from '../../platform/clock.ts';
import { abortable } from '../../token/source/abortable.ts';

export type CheckStepName =
  | 'configuration'
  | 'file'
  | 'dns'
  | 'tcp'
  | 'tunnel'
  | 'tls'
  | 'discovery'
  | 'token'
  | 'scope'
  | 'lifetime'
  | 'clock'
  | 'probe'
  | 'fleet';

/** `fail`: it will not work. `warn`: it works, and somebody should look at it. `skip`: it could not be looked at. */
export type CheckOutcome = 'ok' | 'warn' | 'fail' | 'skip';

/** What was found. Neither text may hold a secret or a token. */
export interface CheckFinding {
  readonly outcome: CheckOutcome;
  readonly detail: string;
  /** What to do next: which setting, which file, whom to ask. */
  readonly advice?: string;
}

/** What was found, and what later steps go on with. */
export interface StepResult<T> extends CheckFinding {
  readonly value?: T;
}

export interface CheckStep extends CheckFinding {
  readonly step: CheckStepName;
  /** What was looked at: `token endpoint`, `upstream`, a setting. */
  readonly target: string;
  /** How long it took, milliseconds; 0 when it follows from another step. */
  readonly ms: number;
}

/** What all walks of one check share. */
export interface CheckContext {
  readonly clock: Clock;
  /** A person wants it to end. */
  readonly stop: AbortSignal;
  /** Aborted by `stop`, and when the whole check has taken too long. */
  readonly signal: AbortSignal;
}

export class StepRunner {
  readonly #target: string;
  readonly #context: CheckContext;
  readonly #steps: CheckStep[] = [];

  constructor(target: string, surroundings: CheckContext) {
    this.#target = target;
    this.#context = surroundings;
  }

  get steps(): readonly CheckStep[] {
    return this.#steps;
  }

  /** Adds what follows from something else. */
  record(step: CheckStepName, verdict: CheckFinding): void {
    this.#add(step, 0, verdict);
  }

  /** Adds steps that cannot be taken. */
  skip(steps: readonly CheckStepName[], why: string): void {
    for (const step of steps) this.record(step, { outcome: 'skip', detail: why });
  }

  /** Takes a step; its value, if it has brought one. Never rejects: whatever is thrown becomes what was found. */
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
    const { value, ...verdict } = signal.aborted ? this.#explain(undefined) : await find();
    this.#add(step, clock.now() - startedAt, verdict);
    return value;
  }

  #explain(error: unknown): StepResult<never> {
    const { stop, signal } = this.#context;
    if (stop.aborted) return { outcome: 'skip', detail: 'interrupted' };
    const whom = `ask whoever runs the ${this.#target} why`;
    if (signal.aborted) return { outcome: 'fail', detail: 'no end in the time that a check may take', advice: whom };
    // The message of an error that nobody expects may quote what was sent.
    return { outcome: 'fail', detail: `failed unexpectedly (${errorCodeOf(error)})`, advice: whom };
  }

  #add(step: CheckStepName, ms: number, { outcome, detail, advice }: CheckFinding): void {
    const rounded = Math.round(ms * 10) / 10;
    const base = { step, target: this.#target, outcome, ms: rounded, detail };
    this.#steps.push(advice === undefined ? base : { ...base, advice });
  }
}

/** The code of an error of Node's, of several the first one's; `unknown` when there is none. */
export function errorCodeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown';
  if ('code' in error && typeof error.code === 'string') return error.code;
  if ('errors' in error && Array.isArray(error.errors)) return errorCodeOf(error.errors[0]);
  return 'unknown';
}
