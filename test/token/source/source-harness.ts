/** A token source over a token endpoint that answers as told, in virtual time. */
import { createTokenSource } from '../../../src/token/source/token-source.ts';
import type { DeclinableFetchResult, TokenNeed } from '../../../src/token/source/token-fetcher.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import type { TokenSource } from '../../../src/token/token.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { ManualClock } from '../../support/manual-clock.ts';

export const UNAVAILABLE: TokenRequestResult = { kind: 'unavailable', detail: 'auth.test answered 500' };
export const REJECTED_DETAIL = 'auth.test answered 401 and the error "invalid_client"';
export const REJECTED: TokenRequestResult = { kind: 'rejected', detail: REJECTED_DETAIL };

/** What a test may set, at the start or later. */
type Setup = Partial<Pick<SourceHarness, 'latencyMs' | 'lifetimeMs' | 'random' | 'answer' | 'fault' | 'scope'>>;

export class SourceHarness {
  readonly clock = new ManualClock();
  readonly source: TokenSource;
  readonly events: SidecarEvent[] = [];
  /** Monotonic instants of the token requests. */
  readonly requestedAt: number[] = [];
  latencyMs = 100;
  lifetimeMs = 3_600_000;
  random = 0.5;
  /** What the supply is told when new credentials are seen; undefined while nobody watches. */
  onNews: (() => void) | undefined;
  /** Why each token was asked for. */
  readonly reasons: TokenNeed['reason'][] = [];
  mostInFlight = 0;
  aborted = 0;
  /** Undefined: a new token. */
  answer: DeclinableFetchResult | undefined;
  /** Asked for. */
  scope: string | undefined;
  /** Told at the request for each token that is granted: the earliest that its life can begin. */
  onGrant: (value: string, lifetimeMs: number) => void = () => undefined;
  /** Thrown instead of an answer. */
  fault: Error | undefined;
  #inFlight = 0;

  constructor(setup: Setup = {}) {
    Object.assign(this, setup);
    this.source = createTokenSource({
      credential: 'default',
      scope: this.scope,
      fetcher: {
        fetch: (need, signal) => {
          this.reasons.push(need.reason);
          return this.#requestToken(signal);
        },
        watchCredentials: (onNews) => {
          this.onNews = onNews;
          return () => {
            this.onNews = undefined;
          };
        },
        credentialFault: () => undefined,
      },
      invalidationCooldownMs: 5_000,
      clock: this.clock,
      random: () => this.random,
      observe: (event) => this.events.push(event),
    });
  }

  /** With its first token held, which took `latencyMs`. */
  static async holding(setup?: Setup): Promise<SourceHarness> {
    const harness = new SourceHarness(setup);
    harness.source.start();
    await harness.clock.advance(harness.latencyMs);
    if (harness.source.current()?.value !== 'token-1') throw new Error('no first token');
    return harness;
  }

  get requests(): number {
    return this.requestedAt.length;
  }

  /** A wait that is never cut short. */
  get patient(): AbortSignal {
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
        else resolve(this.answer ?? { kind: 'ok', value, lifetimeMs, scope: undefined });
      });
    });
  }
}

/** What a promise came to, without waiting for it. */
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
