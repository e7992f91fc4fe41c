/**
 * What the alert expressions count, over the last 15 minutes in slots of ten seconds (pure). Bounded: one array for each counter of each
 * configured route and credential. active-alerts.ts compares the sums with the thresholds.
 */
import type { SidecarEvent } from '../../telemetry/events.ts';
import type { ThrottleState } from '../../throttle/throttle.ts';
import { ALERT_RULES } from './alert-rules.ts';

/** The part of a throttle's state that is sampled once a second. */
export type AlertSample = Pick<ThrottleState, 'route' | 'pausedMs'>;

export type RouteCounter =
  | 'requests'
  | 'failed'
  | 'upstreamErrors'
  | 'permits'
  | 'slowPermits'
  | 'rateLimited'
  | 'shed'
  | 'cut'
  | 'scopeRefusals'
  | 'samples'
  | 'pausedSamples';
export type CredentialCounter = 'rejections' | 'rotationFailures';
export type ProcessCounter =
  | 'attempts'
  | 'unauthorized'
  /** Attempts that were unreachable, timed out or were reset. */
  | 'withoutResponse'
  /** The same, with a reset only where the client got the error. */
  | 'upstreamFaults'
  | 'retriesRefused'
  | 'reloadsFailed';

const SLOT_MS = 10_000;
/** Fifteen minutes, and the slot that is being filled. */
const SLOT_COUNT = 91;
const SLOW_MS = ALERT_RULES.queueSlow.limits.seconds * 1000;
/** Local replies whose cause is a connection that broke. */
const RESET_REPLIES: ReadonlySet<string> = new Set(['UPSTREAM_RESET', 'UPSTREAM_PROTOCOL_ERROR']);
const SHED_REASONS: ReadonlySet<string> = new Set(['full', 'timeout', 'expected_wait']);

export class AlertCounters {
  /** By counter and subject: a route, a credential, or '' for the process. */
  readonly #series = new Map<string, Map<string, Uint32Array>>();
  /** When the newest token of a credential was obtained, monotonic milliseconds. */
  readonly #tokenAt = new Map<string, number>();
  #now: number;
  #slot: number;

  /** @param now monotonic milliseconds */
  constructor(now: number) {
    this.#now = now;
    this.#slot = Math.floor(now / SLOT_MS);
  }

  /** Counts an event in the current slot. */
  observe(event: SidecarEvent): void {
    switch (event.kind) {
      case 'request-ended':
        this.#countRequest(event);
        return;
      case 'permit-granted':
        this.#add('permits', event.route);
        if (event.waitedMs > SLOW_MS) this.#add('slowPermits', event.route);
        return;
      case 'attempt-ended':
        this.#add('attempts', '');
        if (event.outcome === 'unauthorized') this.#add('unauthorized', '');
        if (event.outcome === 'unreachable' || event.outcome === 'timeout') this.#add('upstreamFaults', '');
        if (event.outcome === 'unreachable' || event.outcome === 'timeout' || event.outcome === 'reset')
          this.#add('withoutResponse', '');
        return;
      case 'rate-limited':
        this.#add('rateLimited', event.route);
        return;
      case 'local-reply':
        if (RESET_REPLIES.has(event.code)) this.#add('upstreamFaults', '');
        return;
      case 'queue-rejected':
        if (SHED_REASONS.has(event.reason)) this.#add('shed', event.route);
        return;
      case 'insufficient-scope':
        this.#add('scopeRefusals', event.route);
        return;
      case 'retry-budget-exhausted':
        this.#add('retriesRefused', '');
        return;
      case 'configuration-read':
        if (event.outcome !== 'ok') this.#add('reloadsFailed', '');
        return;
      default:
        this.#countTokenEvent(event);
    }
  }

  /** Once a second: moves on to the slot of `now`. @param now monotonic milliseconds */
  sample(now: number, throttles: readonly AlertSample[]): void {
    this.#now = Math.max(now, this.#now);
    const slot = Math.floor(this.#now / SLOT_MS);
    const passed = Math.min(SLOT_COUNT, slot - this.#slot);
    for (let step = 1; step <= passed; step++) {
      const index = (this.#slot + step) % SLOT_COUNT;
      for (const subjects of this.#series.values()) for (const counts of subjects.values()) counts[index] = 0;
    }
    this.#slot = slot;
    for (const { route, pausedMs } of throttles) {
      this.#add('samples', route);
      if (pausedMs > 0) this.#add('pausedSamples', route);
    }
  }

  /** @param windowMs at most 15 minutes */
  countRoute(counter: RouteCounter, route: string, windowMs: number): number {
    return this.#sum(counter, route, windowMs);
  }

  /** @param windowMs at most 15 minutes */
  countCredential(counter: CredentialCounter, credential: string, windowMs: number): number {
    return this.#sum(counter, credential, windowMs);
  }

  /** @param windowMs at most 15 minutes */
  countProcess(counter: ProcessCounter, windowMs: number): number {
    return this.#sum(counter, '', windowMs);
  }

  /** Milliseconds since the newest token was obtained; 0 when that was not seen. */
  tokenAgeMs(credential: string): number {
    return this.#now - (this.#tokenAt.get(credential) ?? this.#now);
  }

  #countRequest(event: Extract<SidecarEvent, { kind: 'request-ended' }>): void {
    const { route, code, source } = event;
    this.#add('requests', route);
    const isServerError = code >= 500 && code < 600;
    if (isServerError || code === 401 || code === 429) this.#add('failed', route);
    if (isServerError && source === 'upstream') this.#add('upstreamErrors', route);
    if (event.cutBy === 'upstream') this.#add('cut', route);
  }

  #countTokenEvent(event: SidecarEvent): void {
    switch (event.kind) {
      case 'token-requested':
        if (event.outcome === 'ok') this.#tokenAt.set(event.credential, this.#now);
        if (event.outcome === 'rejected') this.#add('rejections', event.credential);
        return;
      case 'token-found':
        this.#tokenAt.set(event.credential, this.#now);
        return;
      case 'token-not-asked':
        if (event.outcome === 'rejected') this.#add('rejections', event.credential);
        return;
      case 'credential-rotation':
        if (event.outcome !== 'taken') this.#add('rotationFailures', event.credential);
        return;
      default:
    }
  }

  #add(counter: RouteCounter | CredentialCounter | ProcessCounter, subject: string): void {
    let subjects = this.#series.get(counter);
    if (subjects === undefined) this.#series.set(counter, (subjects = new Map<string, Uint32Array>()));
    let counts = subjects.get(subject);
    if (counts === undefined) subjects.set(subject, (counts = new Uint32Array(SLOT_COUNT)));
    const index = this.#slot % SLOT_COUNT;
    counts[index] = (counts[index] ?? 0) + 1;
  }

  #sum(counter: RouteCounter | CredentialCounter | ProcessCounter, subject: string, windowMs: number): number {
    const counts = this.#series.get(counter)?.get(subject);
    if (counts === undefined) return 0;
    let sum = 0;
    const slots = Math.min(SLOT_COUNT - 1, Math.ceil(windowMs / SLOT_MS));
    for (let back = 0; back <= slots; back++) sum += counts[(this.#slot - back + SLOT_COUNT * 2) % SLOT_COUNT] ?? 0;
    return sum;
  }
}
