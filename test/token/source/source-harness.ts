/** A token source over a fetcher with a configurable result, in virtual time. */
import { HeldTokenSource } from '../../../src/token/source/token-source.ts';
import type { DeclinableFetchResult, TokenNeed } from '../../../src/token/source/token-fetcher.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import type { Token, TokenSource, TokenUse } from '../../../src/token/token.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { ManualClock } from '../../support/manual-clock.ts';

export const UNAVAILABLE: TokenRequestResult = { kind: 'unavailable', detail: 'auth.test answered 500' };
export const REJECTED_DETAIL = 'auth.test answered 401 and the error "invalid_client"';
export const REJECTED: TokenRequestResult = { kind: 'rejected', detail: REJECTED_DETAIL };

/** What a test can set, at the start or later. */
type Setup = Partial<Pick<SourceHarness, 'latencyMs' | 'lifetimeMs' | 'random' | 'result' | 'fault' | 'scope'>>;

export class SourceHarness {
  readonly clock = new ManualClock();
  readonly source: TokenSource;
  readonly events: SidecarEvent[] = [];
  /** Monotonic instants of the token requests. */
  readonly requestedAt: number[] = [];
  latencyMs = 100;
  lifetimeMs = 3_600_000;
  random = 0.5;
  /** Reports new credentials; undefined while they are not watched. */
  onChange: (() => void) | undefined;
  readonly reasons: TokenNeed['reason'][] = [];
  mostInFlight = 0;
  aborted = 0;
  /** Undefined = a new token. */
  result: DeclinableFetchResult | undefined;
  /** Requested. */
  scope: string | undefined;
  /** Called at the start of each token request, the earliest start of the lifetime. */
  onGrant: (value: string, lifetimeMs: number) => void = () => undefined;
  /** Thrown instead of a result. */
  fault: Error | undefined;
  #inFlight = 0;

  constructor(setup: Setup = {}) {
    Object.assign(this, setup);
    this.source = new HeldTokenSource({
      credential: 'default',
      scope: this.scope,
      fetcher: {
        fetch: (need, signal) => {
          this.reasons.push(need.reason);
          return this.#requestToken(signal);
        },
      },
      credentialWatch: {
        watch: (onChange) => {
          this.onChange = onChange;
          return () => {
            this.onChange = undefined;
          };
        },
        fault: () => undefined,
      },
      invalidationCooldownMs: 5_000,
      settleMs: 2_000,
      clock: this.clock,
      random: () => this.random,
      observe: (event) => this.events.push(event),
    });
  }

  /** Holds its first token, after `latencyMs`. */
  static async holding(setup?: Setup): Promise<SourceHarness> {
    const harness = new SourceHarness(setup);
    harness.source.start();
    await harness.clock.advance(harness.latencyMs);
    if (harness.source.current()?.token.value !== 'token-1') throw new Error('no first token');
    return harness;
  }

  get requests(): number {
    return this.requestedAt.length;
  }

  /** A call that was sent with this token now got a 401. */
  async refuse(token: Token, signal = this.signal): Promise<'replay' | 'pass-through'> {
    return refuse(this.source, this.useOf(token), signal);
  }

  /** The replay of a call with this token was not refused. */
  accept(token: Token, isReplay = true): void {
    this.source.recordAccepted(this.useOf(token), isReplay);
  }

  useOf(token: Token): TokenUse {
    return { token, takenAt: this.clock.now() };
  }

  /** A signal that is never aborted. */
  get signal(): AbortSignal {
    return new AbortController().signal;
  }

  eventsOf<K extends SidecarEvent['kind']>(kind: K): Extract<SidecarEvent, { kind: K }>[] {
    return this.events.filter((event): event is Extract<SidecarEvent, { kind: K }> => event.kind === kind);
  }

  #requestToken(signal: AbortSignal): Promise<DeclinableFetchResult> {
    this.requestedAt.push(this.clock.now());
    const value = `token-${String(this.requests)}`;
    this.onGrant(value, this.lifetimeMs);
    this.#inFlight += 1;
    this.mostInFlight = Math.max(this.mostInFlight, this.#inFlight);
    signal.addEventListener('abort', () => {
      this.aborted += 1;
    });
    const { lifetimeMs } = this;
    return new Promise((resolve, reject) => {
      this.clock.after(this.latencyMs, () => {
        this.#inFlight -= 1;
        if (this.fault !== undefined) reject(this.fault);
        else resolve(this.result ?? { kind: 'ok', value, lifetimeMs, scope: undefined });
      });
    });
  }
}

/** The 401 of a call that used a token so. */
export async function refuse(
  source: TokenSource,
  use: TokenUse,
  signal: AbortSignal,
): Promise<'replay' | 'pass-through'> {
  source.recordRejected(use);
  return (await source.waitForReplacement(use, signal)) ? 'replay' : 'pass-through';
}

/** The state of a promise, without waiting for it. */
export function watch<T>(promise: Promise<T>): { value: T | undefined; error: unknown; settled: boolean } {
  const seen: { value: T | undefined; error: unknown; settled: boolean } = {
    value: undefined,
    error: undefined,
    settled: false,
  };
  promise.then(
    (value) => Object.assign(seen, { value, settled: true }),
    (error: unknown) => Object.assign(seen, { error, settled: true }),
  );
  return seen;
}
