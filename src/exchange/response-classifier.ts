/**
 * What an answer's head tells the throttle: how the attempt ended for it, and what it says about a rate limit. Most answers say
 * nothing: those cost one look at their names. Each new shape in which limits are stated is told once, as evidence for the operator.
 */
import type { Clock } from '../platform/clock.ts';
import type { EventObserver } from '../telemetry/events.ts';
import { ObservedSignalContext } from '../throttle/signals/observed-signal-context.ts';
import {
  MAX_EVIDENCE_LENGTH,
  hasExhaustedQuota,
  readRateLimitSignal,
  type RateLimitSignal,
} from '../throttle/signals/rate-limit-signal.ts';
import { divideSignal } from '../throttle/signals/divide-signal.ts';
import { SignalShapes } from '../throttle/signals/signal-shapes.ts';
import type { PermitReport } from '../throttle/throttle.ts';
import type { UpstreamResponse } from '../upstream/upstream-response.ts';
import { readScopeRefusal } from './scope-refusal.ts';

/** What one answer was. */
export interface ResponseClassification {
  /** As the throttle needs to know it. */
  readonly permitReport: PermitReport;
  /** The call was refused for its rate and not carried out: a 429, or a 403 that says so. */
  readonly isRateLimited: boolean;
  /** How long the upstream says to wait, milliseconds. */
  readonly statedWaitMs: number | undefined;
}

export interface ResponseClassifierOptions {
  /** The route's configured name, for events. */
  readonly route: string;
  /** Replicas that what is stated is divided by. */
  readonly replicas: number;
  readonly clock: Clock;
  readonly observe: EventObserver;
}

const NOT_LIMITED = { isRateLimited: false, statedWaitMs: undefined };
const ACCEPTED: ResponseClassification = { permitReport: { kind: 'accepted' }, ...NOT_LIMITED };
const UNKNOWN: ResponseClassification = { permitReport: { kind: 'unknown' }, ...NOT_LIMITED };

const LIMIT_HEADER = /^(?:retry-after(?:-ms)?|x-ms-retry-after-ms|(?:x-)?rate-?limit.*)$/i;
/** Looked at only where the first letter fits, which it seldom does. */
const isLimitHeader = (name: string): boolean => 'rRxX'.includes(name.charAt(0)) && LIMIT_HEADER.test(name);
/** On a refusal a field that is not understood may still help a person. */
const LIMIT_RELATED_NAME = /limit|quota|throttl|retry|back-?off/i;
const SENSITIVE_NAME = /auth|cookie|secret|session|signature|token$/i;
const MAX_EVIDENCE_HEADERS = 24;

/** Reads the answers of one upstream. */
export class ResponseClassifier {
  readonly #options: ResponseClassifierOptions;
  readonly #context = new ObservedSignalContext();
  readonly #shapes = new SignalShapes();

  constructor(options: ResponseClassifierOptions) {
    this.#options = options;
  }

  classify(head: UpstreamResponse): ResponseClassification {
    const { status } = head;
    const lacksScope = this.#reportScopeRefusal(head);
    const stated = collectHeaders(head, isLimitHeader);
    // An answer of a server in trouble is no success: it neither widens what may be in flight nor raises the rate.
    if (stated === undefined && status !== 429) return status < 500 ? ACCEPTED : UNKNOWN;
    const { clock, replicas } = this.#options;
    const field = (name: string): string | undefined => stated?.get(name);
    this.#context.observe(field, clock.now());
    const signal = readRateLimitSignal(status, field, clock.wallNow(), this.#context);
    const isRateLimited = status === 429 || (status === 403 && !lacksScope && isRateLimitRefusal(signal));
    const isComplaint = isRateLimited || (status === 503 && signal.statedWaitMs !== undefined);
    this.#reportShape(head, isComplaint, stated ?? new Map<string, string>());
    const { statedWaitMs } = signal;
    const shared = divideSignal(signal, replicas);
    if (isComplaint) {
      const result: PermitReport = { kind: 'rate-limited', signal: { ...shared, fields: collectEvidence(head) } };
      return { permitReport: result, isRateLimited, statedWaitMs };
    }
    if (status >= 500) return { ...UNKNOWN, statedWaitMs };
    return { permitReport: { kind: 'accepted', hint: shared }, isRateLimited, statedWaitMs };
  }

  /** Whether it is one, for which no wait helps. */
  #reportScopeRefusal(head: UpstreamResponse): boolean {
    const refusal = readScopeRefusal(head);
    const { observe, route } = this.#options;
    if (refusal !== undefined) observe({ kind: 'insufficient-scope', route, needed: refusal.needed });
    return refusal !== undefined;
  }

  #reportShape(head: UpstreamResponse, isComplaint: boolean, stated: ReadonlyMap<string, string>): void {
    const { status } = head;
    const on = isComplaint ? 'refused' : status < 500 ? 'accepted' : 'failed';
    // Retry-After alone has other meanings there: a redirect, a job that is not done (RFC 9110 §10.2.3).
    if (on === 'accepted' && !hasQuotaHeader(stated)) return;
    // What succeeds and what the application got wrong come in many statuses, and say nothing of the limit by them.
    const shape = this.#shapes.describeIfNew(isComplaint || status >= 500 ? String(status) : on, stated);
    if (shape === undefined) return;
    const { observe, route } = this.#options;
    observe({ kind: 'rate-limit-shape', route, on, status, shape, fields: collectEvidence(head) });
  }
}

/** A 403 for its rate is as GitHub gives it: with a time to wait, or with nothing left. */
function isRateLimitRefusal(signal: RateLimitSignal): boolean {
  return signal.statedWaitMs !== undefined || hasExhaustedQuota(signal);
}

function hasQuotaHeader(stated: ReadonlyMap<string, string>): boolean {
  for (const name of stated.keys()) if (!name.includes('retry-after')) return true;
  return false;
}

/** Fields by their names in lower case, several lines joined by a comma; undefined when there is none. */
function collectHeaders(
  { headers }: UpstreamResponse,
  isWanted: (name: string) => boolean,
): Map<string, string> | undefined {
  let found: Map<string, string> | undefined;
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const received = headers[at] ?? '';
    if (!isWanted(received)) continue;
    const name = received.toLowerCase();
    const before = found?.get(name);
    const value = headers[at + 1] ?? '';
    // A list may come in several lines; of Retry-After the first counts, as node:http has it.
    if (before !== undefined && name.startsWith('retry-after')) continue;
    (found ??= new Map()).set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return found;
}

/** What a person may want to see, bounded; never a credential. */
function collectEvidence(head: UpstreamResponse): Record<string, string> {
  const candidates = [...(collectHeaders(head, (name) => LIMIT_RELATED_NAME.test(name)) ?? [])].filter(
    ([name]) => !SENSITIVE_NAME.test(name),
  );
  return Object.fromEntries(
    candidates.slice(0, MAX_EVIDENCE_HEADERS).map(([name, value]) => [name, value.slice(0, MAX_EVIDENCE_LENGTH)]),
  );
}
