/**
 * Classifies a response head for the throttle: was the call refused for its rate, and what is stated about a limit. Most responses
 * state nothing, which costs one pass over the header names. Each new form of stated limits is reported once, for the operator.
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

/** What a response head means for the throttle and for a retry. */
export interface ResponseClassification {
  readonly permitReport: PermitReport;
  /** The call was refused for its rate and not carried out: a 429, a 403 that says so, or what the configuration names. */
  readonly isRateLimited: boolean;
  /** How long the upstream asks to wait, milliseconds. */
  readonly statedWaitMs: number | undefined;
}

export interface ResponseClassifierOptions {
  /** The route's configured name, for events. */
  readonly route: string;
  /** A stated limit is divided by the number of replicas. */
  readonly replicas: number;
  readonly clock: Clock;
  readonly observe: EventObserver;
}

const NOT_LIMITED = { isRateLimited: false, statedWaitMs: undefined };
const ACCEPTED: ResponseClassification = { permitReport: { kind: 'accepted' }, ...NOT_LIMITED };
const UNKNOWN: ResponseClassification = { permitReport: { kind: 'unknown' }, ...NOT_LIMITED };

const LIMIT_HEADER = /^(?:retry-after(?:-ms)?|x-ms-retry-after-ms|(?:x-)?rate-?limit.*)$/i;
/** Compared first: most names begin with another letter. */
const LIMIT_HEADER_INITIALS = 'rRxX';
/** On a refusal a header that is not understood may still help the operator. */
const LIMIT_RELATED_NAME = /limit|quota|throttl|retry|back-?off/i;
const SENSITIVE_NAME = /auth|cookie|secret|session|signature|token$/i;
const MAX_EVIDENCE_HEADERS = 24;

/** For the responses of one upstream. */
export class ResponseClassifier {
  readonly #options: ResponseClassifierOptions;
  readonly #context = new ObservedSignalContext();
  readonly #shapes = new SignalShapes();

  constructor(options: ResponseClassifierOptions) {
    this.#options = options;
  }

  /** @param isConfiguredRefusal the configuration calls it a rate-limit refusal. Default false */
  classify(head: UpstreamResponse, isConfiguredRefusal = false): ResponseClassification {
    const { status } = head;
    const lacksScope = status === 403 && this.#reportScopeRefusal(head);
    const isConfigured = isConfiguredRefusal && !lacksScope;
    const stated = collectHeaders(head.headers, LIMIT_HEADER, LIMIT_HEADER_INITIALS);
    // A 5xx is no success: it neither raises the number in flight nor the rate.
    if (stated === undefined && status !== 429 && !isConfigured) return status < 500 ? ACCEPTED : UNKNOWN;
    const { clock, replicas } = this.#options;
    const getHeader = (name: string): string | undefined => stated?.get(name);
    this.#context.observe(getHeader, clock.now());
    const signal = readRateLimitSignal(status, getHeader, clock.wallNow(), this.#context, isConfigured || undefined);
    const isRateLimited =
      isConfigured || status === 429 || (status === 403 && !lacksScope && isRateLimitRefusal(signal));
    const isRefusal = isRateLimited || (status === 503 && signal.statedWaitMs !== undefined);
    this.#reportShape(head, isRefusal, stated ?? new Map<string, string>());
    const { statedWaitMs } = signal;
    const shared = divideSignal(signal, replicas);
    if (isRefusal) {
      const fields = collectEvidence(head.headers);
      const permitReport: PermitReport = { kind: 'rate-limited', signal: { ...shared, fields }, isConfigured };
      return { permitReport, isRateLimited, statedWaitMs };
    }
    if (status >= 500) return { ...UNKNOWN, statedWaitMs };
    return { permitReport: { kind: 'accepted', hint: shared }, isRateLimited, statedWaitMs };
  }

  /** @returns whether it is one, for which no wait helps */
  #reportScopeRefusal(head: UpstreamResponse): boolean {
    const refusal = readScopeRefusal(head);
    const { observe, route } = this.#options;
    if (refusal !== undefined) observe({ kind: 'insufficient-scope', route, needed: refusal.needed });
    return refusal !== undefined;
  }

  #reportShape({ status, headers }: UpstreamResponse, isRefusal: boolean, stated: ReadonlyMap<string, string>): void {
    const on = isRefusal ? 'refused' : status < 500 ? 'accepted' : 'failed';
    // Retry-After alone has other meanings there: a redirect, a job that is not done (RFC 9110 §10.2.3).
    if (on === 'accepted' && !hasQuotaHeader(stated)) return;
    // The many statuses of success and of client errors say nothing about the limit.
    const shape = this.#shapes.describeIfNew(isRefusal || status >= 500 ? String(status) : on, stated);
    if (shape === undefined) return;
    const { observe, route } = this.#options;
    observe({ kind: 'rate-limit-shape', route, on, status, shape, fields: collectEvidence(headers) });
  }
}

/** A 403 for the rate has a time to wait, or nothing left (as GitHub sends it). */
function isRateLimitRefusal(signal: RateLimitSignal): boolean {
  return signal.statedWaitMs !== undefined || hasExhaustedQuota(signal);
}

function hasQuotaHeader(stated: ReadonlyMap<string, string>): boolean {
  for (const name of stated.keys()) if (!name.includes('retry-after')) return true;
  return false;
}

/**
 * The values of headers by lower-case name, several lines joined by a comma; undefined when there is none.
 * @param initials the letters that a name begins with. Default: any
 */
function collectHeaders(
  headers: readonly string[],
  pattern: RegExp,
  initials?: string,
): Map<string, string> | undefined {
  let found: Map<string, string> | undefined;
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const received = headers[at] ?? '';
    if (initials?.includes(received.charAt(0)) === false || !pattern.test(received)) continue;
    const name = received.toLowerCase();
    const before = found?.get(name);
    const value = headers[at + 1] ?? '';
    // A list may come in several lines; of Retry-After the first counts, as in node:http.
    if (before !== undefined && name.startsWith('retry-after')) continue;
    (found ??= new Map()).set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return found;
}

/** What may help the operator, bounded; never a credential. */
function collectEvidence(headers: readonly string[]): Record<string, string> {
  const candidates = [...(collectHeaders(headers, LIMIT_RELATED_NAME) ?? [])].filter(
    ([name]) => !SENSITIVE_NAME.test(name),
  );
  return Object.fromEntries(
    candidates.slice(0, MAX_EVIDENCE_HEADERS).map(([name, value]) => [name, value.slice(0, MAX_EVIDENCE_LENGTH)]),
  );
}
