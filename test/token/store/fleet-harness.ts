/**
 * Replicas with one token source each, a token endpoint with a configurable result, and a shared store, all in virtual time.
 * Each replica has its own wall clock, and can die silently.
 */
import type { Clock } from '../../../src/platform/clock.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { RotatingTokenFetcher } from '../../../src/token/client/rotating-token-fetcher.ts';
import type { TokenBinding } from '../../../src/token/store/sealed-token.ts';
import { shareTokenRequests } from '../../../src/token/store/shared-token-requests.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import type { SharedTokenStore } from '../../../src/token/store/shared-token-store.ts';
import { HeldTokenSource } from '../../../src/token/source/token-source.ts';
import type { TokenSource } from '../../../src/token/token.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { credentialOf } from '../client/credential.ts';
import { MemoryTokenStore } from './memory-token-store.ts';
import { ORDINARY_REQUEST } from './ordinary-request.ts';

export const SECRET = 'the-secret-of-all-replicas';

const BINDING: TokenBinding = {
  tokenUrl: 'https://auth.test/oauth/token',
  clientId: 'client-of-the-tests',
  method: 'client_secret_basic',
  requestedParameters: [['audience', 'https://api.test/']],
  ...ORDINARY_REQUEST,
};

export interface ReplicaOptions {
  readonly secret?: string;
  readonly clientId?: string;
  /** How far its wall clock is ahead, milliseconds. */
  readonly wallOffsetMs?: number;
  /** Replaces the endpoint for this replica. */
  readonly respond?: (value: string) => TokenRequestResult;
  /** Default: the harness's own. */
  readonly store?: SharedTokenStore;
}

export interface Replica {
  readonly source: TokenSource;
  readonly events: SidecarEvent[];
  /** Number of token requests sent. */
  requests: number;
  /** Stops all its timers. */
  die(): void;
}

export class FleetHarness {
  readonly clock = new ManualClock();
  readonly store = new MemoryTokenStore(this.clock);
  readonly replicas: Replica[] = [];
  /** Instants of the requests. */
  readonly requestedAt: number[] = [];
  /** Of all replicas without their own. */
  secret = SECRET;
  latencyMs = 300;
  lifetimeMs = 3_600_000;
  /** The endpoint's current result. Default: a new token. */
  respond = (value: string): TokenRequestResult => ({
    kind: 'ok',
    value,
    lifetimeMs: this.lifetimeMs,
    scope: undefined,
  });
  #random = 1;

  /** Adds equal replicas without starting them. */
  add(count: number, options: ReplicaOptions = {}): Replica[] {
    const added = Array.from({ length: count }, () => this.#create(options));
    this.replicas.push(...added);
    return added;
  }

  /** Starts all and waits until all hold a token. */
  async start(): Promise<void> {
    for (const { source } of this.replicas) source.start();
    await this.clock.advance(this.latencyMs + 1000);
    if (this.values().includes(undefined)) throw new Error('a replica has no token');
  }

  get requests(): number {
    return this.requestedAt.length;
  }

  /** The token that each replica would send now. */
  values(): (string | undefined)[] {
    return this.replicas.map(({ source }) => source.current()?.token.value);
  }

  /** Repeatable, in [0, 1) (Park and Miller). */
  random(): number {
    this.#random = (this.#random * 48_271) % 2_147_483_647;
    return this.#random / 2_147_483_647;
  }

  #create(options: ReplicaOptions): Replica {
    const { secret, clientId = BINDING.clientId, wallOffsetMs = 0, store = this.store } = options;
    const life = new AbortController();
    const clock = mortal(this.clock, life.signal, wallOffsetMs);
    const events: SidecarEvent[] = [];
    const observe = (event: SidecarEvent): void => void events.push(event);
    const random = (): number => this.random();
    const request = shareTokenRequests({
      store,
      sendRequest: (_client, signal) => {
        replica.requests++;
        return this.#request(options.respond ?? ((value) => this.respond(value)), signal, life.signal);
      },
      identify: ({ version }) => ({ binding: { ...BINDING, clientId }, keyMaterial: version }),
      peerWaitMs: 10_000,
      clock,
      random,
      observe,
    });
    const fetcher = new RotatingTokenFetcher({
      credential: 'default',
      read: () => Promise.resolve(credentialOf(secret ?? this.secret)),
      request,
      clock,
      observe,
    });
    const source = new HeldTokenSource({
      credential: 'default',
      scope: undefined,
      fetcher,
      credentialWatch: fetcher,
      invalidationCooldownMs: 5000,
      settleMs: 2000,
      clock,
      random,
      observe,
    });
    const replica: Replica = { source, events, requests: 0, die: () => life.abort() };
    return replica;
  }

  #request(
    respond: (value: string) => TokenRequestResult,
    signal: AbortSignal,
    life: AbortSignal,
  ): Promise<TokenRequestResult> {
    const index = this.requestedAt.push(this.clock.now());
    return new Promise((resolve) => {
      const cancel = this.clock.after(this.latencyMs, () => resolve(respond(`token-${String(index)}`)));
      signal.addEventListener('abort', () => {
        cancel();
        resolve({ kind: 'unavailable', detail: 'the token request was abandoned' });
      });
      life.addEventListener('abort', cancel);
    });
  }
}

/** A clock whose timers stop with their owner. */
function mortal(clock: ManualClock, life: AbortSignal, wallOffsetMs: number): Clock {
  const unlessDead = (run: () => void) => (): void => {
    if (!life.aborted) run();
  };
  return {
    now: () => clock.now(),
    wallNow: () => clock.wallNow() + wallOffsetMs,
    after: (delayMs, run) => clock.after(delayMs, unlessDead(run)),
    startTimer: (delayMs, target) => ({
      cancel: clock.after(
        delayMs,
        unlessDead(() => target.onTimer()),
      ),
    }),
    exactlyAt: (at, run) => clock.exactlyAt(at, unlessDead(run)),
  };
}
