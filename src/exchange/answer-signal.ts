/**
 * What an answer's head tells the throttle: how the attempt ended for it, and what it says about a rate limit. Most answers say
 * nothing: those cost one look at their names. Each new shape in which limits are stated is told once, as evidence for the operator.
 */
import type { Clock } from '../platform/clock.ts';
import type { Observe } from '../telemetry/events.ts';
import { AnswerContext } from '../throttle/signals/answer-context.ts';
import {
  EVIDENCE_LENGTH,
  isUsedUp,
  readRateLimitSignal,
  type RateLimitSignal,
} from '../throttle/signals/rate-limit-signal.ts';
import { shareSignal } from '../throttle/signals/shared-signal.ts';
import { SignalShapes } from '../throttle/signals/signal-shapes.ts';
import type { AttemptResult } from '../throttle/throttle.ts';
import type { AnswerHead } from '../upstream/answer-head.ts';
import { readScopeRefusal } from './scope-refusal.ts';

/** What one answer was. */
export interface AnswerReading {
  /** As the throttle needs to know it. */
  readonly result: AttemptResult;
  /** The call was refused for its rate and not carried out: a 429, or a 403 that says so. */
  readonly isRateLimited: boolean;
  /** How long the upstream says to wait, milliseconds. */
  readonly statedWaitMs: number | undefined;
}

export interface AnswerSignalsOptions {
  /** The route's configured name, for events. */
  readonly route: string;
  /** Replicas that what is stated is divided by. */
  readonly share: number;
  readonly clock: Clock;
  readonly observe: Observe;
}

const NOT_LIMITED = { isRateLimited: false, statedWaitMs: undefined };
const ACCEPTED: AnswerReading = { result: { kind: 'accepted' }, ...NOT_LIMITED };
const UNKNOWN: AnswerReading = { result: { kind: 'unknown' }, ...NOT_LIMITED };

const STATES_LIMIT = /^(?:retry-after(?:-ms)?|x-ms-retry-after-ms|(?:x-)?rate-?limit.*)$/i;
/** Looked at only where the first letter fits, which it seldom does. */
const statesLimit = (name: string): boolean => 'rRxX'.includes(name.charAt(0)) && STATES_LIMIT.test(name);
/** On a refusal a field that is not understood may still help a person. */
const SPEAKS_OF_LIMIT = /limit|quota|throttl|retry|back-?off/i;
const MAY_BE_SECRET = /auth|cookie|secret|session|signature|token$/i;
const MOST_EVIDENCE = 24;

/** Reads the answers of one upstream. */
export class AnswerSignals {
  readonly #options: AnswerSignalsOptions;
  readonly #context = new AnswerContext();
  readonly #shapes = new SignalShapes();

  constructor(options: AnswerSignalsOptions) {
    this.#options = options;
  }

  read(head: AnswerHead): AnswerReading {
    const { status } = head;
    const lacksScope = this.#tellScopeRefusal(head);
    const stated = collectFields(head, statesLimit);
    // An answer of a server in trouble is no success: it neither widens what may be in flight nor raises the rate.
    if (stated === undefined && status !== 429) return status < 500 ? ACCEPTED : UNKNOWN;
    const { clock, share } = this.#options;
    const field = (name: string): string | undefined => stated?.get(name);
    this.#context.observe(field, clock.now());
    const signal = readRateLimitSignal(status, field, clock.wallNow(), this.#context);
    const isRateLimited = status === 429 || (status === 403 && !lacksScope && isRefusal(signal));
    const isComplaint = isRateLimited || (status === 503 && signal.statedWaitMs !== undefined);
    this.#tellShape(head, isComplaint, stated ?? new Map<string, string>());
    const { statedWaitMs } = signal;
    const shared = shareSignal(signal, share);
    if (isComplaint) {
      const result: AttemptResult = { kind: 'rate-limited', signal: { ...shared, fields: evidenceOf(head) } };
      return { result, isRateLimited, statedWaitMs };
    }
    if (status >= 500) return { ...UNKNOWN, statedWaitMs };
    return { result: { kind: 'accepted', hint: shared }, isRateLimited, statedWaitMs };
  }

  /** Whether it is one, for which no wait helps. */
  #tellScopeRefusal(head: AnswerHead): boolean {
    const refusal = readScopeRefusal(head);
    const { observe, route } = this.#options;
    if (refusal !== undefined) observe({ kind: 'insufficient-scope', route, needed: refusal.needed });
    return refusal !== undefined;
  }

  #tellShape(head: AnswerHead, isComplaint: boolean, stated: ReadonlyMap<string, string>): void {
    const { status } = head;
    const on = isComplaint ? 'refused' : status < 500 ? 'accepted' : 'failed';
    // Retry-After alone has other meanings there: a redirect, a job that is not done (RFC 9110 §10.2.3).
    if (on === 'accepted' && !statesQuota(stated)) return;
    // What succeeds and what the application got wrong come in many statuses, and say nothing of the limit by them.
    const shape = this.#shapes.firstSeen(isComplaint || status >= 500 ? String(status) : on, stated);
    if (shape === undefined) return;
    const { observe, route } = this.#options;
    observe({ kind: 'rate-limit-shape', route, on, status, shape, fields: evidenceOf(head) });
  }
}

/** A 403 for its rate is as GitHub gives it: with a time to wait, or with nothing left. */
function isRefusal(signal: RateLimitSignal): boolean {
  return signal.statedWaitMs !== undefined || isUsedUp(signal);
}

function statesQuota(stated: ReadonlyMap<string, string>): boolean {
  for (const name of stated.keys()) if (!name.includes('retry-after')) return true;
  return false;
}

/** Fields by their names in lower case, several lines joined by a comma; undefined when there is none. */
function collectFields({ fields }: AnswerHead, isWanted: (name: string) => boolean): Map<string, string> | undefined {
  let found: Map<string, string> | undefined;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const received = fields[at] ?? '';
    if (!isWanted(received)) continue;
    const name = received.toLowerCase();
    const before = found?.get(name);
    const value = fields[at + 1] ?? '';
    // A list may come in several lines; of Retry-After the first counts, as node:http has it.
    if (before !== undefined && name.startsWith('retry-after')) continue;
    (found ??= new Map()).set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return found;
}

/** What a person may want to see, bounded; never a credential. */
function evidenceOf(head: AnswerHead): Record<string, string> {
  const candidates = [...(collectFields(head, (name) => SPEAKS_OF_LIMIT.test(name)) ?? [])].filter(
    ([name]) => !MAY_BE_SECRET.test(name),
  );
  return Object.fromEntries(
    candidates.slice(0, MOST_EVIDENCE).map(([name, value]) => [name, value.slice(0, EVIDENCE_LENGTH)]),
  );
}
