/**
 * Classifies a response head for the throttle: was the call refused for its rate, and what is stated about a limit. Most responses
 * state nothing, which costs one pass over the header names.
 */
import type { Clock } from '../platform/clock.ts';
import { readMadeAt, type MadeAt } from '../platform/origin-clock.ts';
import { LIMIT_RELATED_NAME } from '../platform/rate-limit-fields/header-values.ts';
import { SUSPECT_STATUSES, type EventObserver, type SuspectStatus } from '../telemetry/events.ts';
import { ObservedSignalContext } from '../throttle/signals/observed-signal-context.ts';
import {
  divideSignal,
  hasExhaustedQuota,
  readRateLimitSignal,
  type RateLimitSignal,
} from '../throttle/signals/rate-limit-signal.ts';
import { createFieldHints, type FieldHints } from '../throttle/signals/hinted-quotas.ts';
import { isNameOfWords, readStatedFields } from '../throttle/signals/stated-fields.ts';
import type { PermitReport } from '../throttle/throttle.ts';
import type { Redact } from '../platform/secret-redaction.ts';
import { findHeaderValues, listReceivedHeaders, type ResponseHead } from '../upstream/upstream-response.ts';
import { readInsufficientScope, readUnauthorizedReason } from './token-challenge.ts';

export interface ResponseClassification {
  readonly permitReport: PermitReport;
  /** The call was refused for its rate and not carried out: a 429, a 403 that says so, or what the configuration names. */
  readonly isRateLimited: boolean;
  readonly statedWaitMs: number | undefined;
}

export interface ResponseClassifierOptions {
  readonly route: string;
  /** A stated limit is divided by the number of replicas. */
  readonly replicas: number;
  /** `throttle.hints`: meanings by the names of header fields. Default: none. */
  readonly hints?: Readonly<Record<string, string>> | undefined;
  /** Masks tokens that the upstream may echo, in texts that are kept. Default: none are known. */
  readonly maskSecrets?: Redact;
  readonly clock: Clock;
  readonly observe: EventObserver;
}

/** Their challenge says what is wrong with the token. */
const CHALLENGED: ReadonlySet<number> = new Set([401, 403]);
/** Clocks drift slowly: one comparison in this time is enough. */
const CLOCK_INTERVAL_MS = 60_000;
const NOT_LIMITED = { isRateLimited: false, statedWaitMs: undefined };
const ACCEPTED: ResponseClassification = { permitReport: { kind: 'accepted' }, ...NOT_LIMITED };
const NO_FIELDS: ReadonlyMap<string, string> = new Map();
const UNKNOWN: ResponseClassification = { permitReport: { kind: 'unknown' }, ...NOT_LIMITED };

export class ResponseClassifier {
  readonly #options: ResponseClassifierOptions;
  readonly #context = new ObservedSignalContext();
  #comparedAt = -Infinity;

  constructor(options: ResponseClassifierOptions) {
    this.#options = options;
    this.setHints(options.hints ?? {});
  }

  setHints(configured: Readonly<Record<string, string>>): void {
    this.#context.hints = createFieldHints(configured);
  }

  /** @param isConfiguredRefusal the configuration calls it a rate-limit refusal. Default false */
  classify(head: ResponseHead, isConfiguredRefusal = false): ResponseClassification {
    const { status } = head;
    const lacksScope = CHALLENGED.has(status) && this.#reportChallenge(head);
    const isConfigured = isConfiguredRefusal && !lacksScope;
    const { hints } = this.#context;
    const stated =
      head.mayStateLimit === false && hints.size === 0 ? NO_FIELDS : collectHeaders(listReceivedHeaders(head), hints);
    if (stated.size === 0 && status !== 429 && !isConfigured)
      return status < 403 || lacksScope ? ACCEPTED : classifyBare(status);
    const { clock, replicas } = this.#options;
    const [[date], [age]] = ['date', 'age'].map((name) => findHeaderValues(head.headers, name)) as [string[], string[]];
    const made = readMadeAt(date, age, clock.wallNow());
    this.#context.observe(stated, clock.now() - made.ageMs);
    this.#compareClocks(made);
    const signal = readRateLimitSignal(status, stated, made, this.#context, isConfigured || undefined);
    const { statedWaitMs } = signal;
    const isRateLimited =
      isConfigured || status === 429 || (status === 403 && !lacksScope && isRateLimitRefusal(signal));
    const isRefusal = isRateLimited || (status === 503 && statedWaitMs !== undefined);
    const shared = divideSignal(signal, replicas);
    if (isRefusal) {
      const fields = readStatedFields(stated, clock.wallNow());
      const permitReport: PermitReport = { kind: 'rate-limited', signal: shared, isConfigured, fields };
      return { permitReport, isRateLimited, statedWaitMs };
    }
    if (status >= 500) return { ...UNKNOWN, statedWaitMs };
    return { permitReport: { kind: 'accepted', hint: shared }, isRateLimited, statedWaitMs };
  }

  #compareClocks({ skewMs }: MadeAt): void {
    const { clock, observe, route } = this.#options;
    if (skewMs === undefined || clock.now() - this.#comparedAt < CLOCK_INTERVAL_MS) return;
    this.#comparedAt = clock.now();
    observe({ kind: 'clock-compared', from: `the partner (route ${route})`, skewMs });
  }

  /** @param body of a response that is held. Default: not known */
  reportUnauthorized(head: ResponseHead, body?: Buffer): void {
    const { observe, route, maskSecrets = (text: string) => text } = this.#options;
    const detail = readUnauthorizedReason(head, maskSecrets, body);
    if (detail !== undefined) observe({ kind: 'unauthorized', route, detail });
  }

  /** @returns whether the token lacks a scope, for which no wait helps */
  #reportChallenge(head: ResponseHead): boolean {
    const { observe, route, maskSecrets = (text: string) => text } = this.#options;
    if (head.status === 401) this.reportUnauthorized(head);
    const refusal = readInsufficientScope(head, maskSecrets);
    if (refusal !== undefined) observe({ kind: 'insufficient-scope', route, needed: refusal.needed });
    return refusal !== undefined;
  }
}

function classifyBare(status: number): ResponseClassification {
  if (isSuspectStatus(status)) return { permitReport: { kind: 'suspect', status }, ...NOT_LIMITED };
  // A 5xx is no success: it neither raises the number in flight nor the rate.
  return status < 500 ? ACCEPTED : UNKNOWN;
}

function isSuspectStatus(status: number): status is SuspectStatus {
  return (SUSPECT_STATUSES as readonly number[]).includes(status);
}

/** A 403 for the rate has a time to wait, or nothing left (as GitHub sends it). */
function isRateLimitRefusal(signal: RateLimitSignal): boolean {
  return signal.statedWaitMs !== undefined || hasExhaustedQuota(signal);
}

/** The values of headers that may state a limit, by lower-case name, several lines joined by a comma. */
function collectHeaders(headers: readonly string[], hints: FieldHints): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = (headers[at] ?? '').toLowerCase();
    if (!hints.has(name) && !(LIMIT_RELATED_NAME.test(name) && isNameOfWords(name))) continue;
    const before = found.get(name);
    const value = headers[at + 1] ?? '';
    // A list may come in several lines; of Retry-After the first counts, as in node:http.
    if (before !== undefined && name.startsWith('retry-after')) continue;
    found.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return found;
}
