/**
 * Replicas with one token source each, one token endpoint that answers as told, and a board between them, all in virtual time. Each
 * replica has a wall clock of its own, and can die without a word.
 */
import type { Clock } from '../../../src/platform/clock.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { createRotatingTokenFetcher } from '../../../src/token/client/rotating-token-fetcher.ts';
import type { TokenBinding } from '../../../src/token/store/sealed-token.ts';
import { shareTokenRequests } from '../../../src/token/store/shared-token-requests.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import type { SharedTokenStore } from '../../../src/token/store/shared-token-store.ts';
import { createTokenSource } from '../../../src/token/source/token-source.ts';
import type { TokenSource } from '../../../src/token/token.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryBoard } from './memory-board.ts';

export const SECRET = 'the-secret-of-all-replicas';

const BINDING: TokenBinding = {
  tokenUrl: 'https://auth.test/oauth/token',
  clientId: 'client-of-the-tests',
  method: 'client_secret_basic',
  requestedParameters: [['audience', 'https://api.test/']],
};

export interface ReplicaOptions {
  readonly secret?: string;
  readonly clientId?: string;
  /** What its wall clock is ahead, milliseconds. */
  readonly wallOffsetMs?: number;
  /** Answers its requests instead of the endpoint. */
  readonly answer?: (value: string) => TokenRequestResult;
  /** Default: the harness's own. */
  readonly board?: SharedTokenStore;
}

export interface Replica {
  readonly source: TokenSource;
  readonly events: SidecarEvent[];
  /** Token requests sent by it. */
  requests: number;
  /** From now on nothing of it moves any more. */
  die(): void;
}

interface Client {
  readonly kind: 'ready';
  readonly version: string;
}

export class FleetHarness {
  readonly clock = new ManualClock();
  readonly board = new MemoryBoard(this.clock);
  readonly replicas: Replica[] = [];
  /** When requests arrived. */
  readonly requestedAt: number[] = [];
  /** Of all replicas that were given no other. */
  secret = SECRET;
  latencyMs = 300;
  lifetimeMs = 3_600_000;
  /** What the endpoint answers now. Default: a new token. */
  answer = (value: string): TokenRequestResult => ({
    kind: 'ok',
    value,
    lifetimeMs: this.lifetimeMs,
    scope: undefined,
  });
  #random = 1;

  /** Adds replicas that are alike, and does not start them. */
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
    return this.replicas.map(({ source }) => source.current()?.value);
  }

  /** A repeatable number in [0, 1) (Park and Miller). */
  random(): number {
    this.#random = (this.#random * 48_271) % 2_147_483_647;
    return this.#random / 2_147_483_647;
  }

  #create(options: ReplicaOptions): Replica {
    const { secret, clientId = BINDING.clientId, wallOffsetMs = 0, board = this.board } = options;
    const life = new AbortController();
    const clock = mortal(this.clock, life.signal, wallOffsetMs);
    const events: SidecarEvent[] = [];
    const observe = (event: SidecarEvent): void => void events.push(event);
    const random = (): number => this.random();
    const request = shareTokenRequests<Client>({
      store: board,
      sendRequest: (_client, signal) => {
        replica.requests++;
        return this.#request(options.answer ?? ((value) => this.answer(value)), signal, life.signal);
      },
      identify: ({ version }) => ({ binding: { ...BINDING, clientId }, keyMaterial: version }),
      peerWaitMs: 10_000,
      clock,
      random,
      observe,
    });
    const supply = createRotatingTokenFetcher<Client>({
      credential: 'default',
      read: () => Promise.resolve({ kind: 'ready', version: secret ?? this.secret }),
      request,
      canChange: true,
      clock,
      observe,
    });
    const source = createTokenSource({
      credential: 'default',
      scope: undefined,
      fetcher: supply,
      invalidationCooldownMs: 5000,
      clock,
      random,
      observe,
    });
    const replica: Replica = { source, events, requests: 0, die: () => life.abort() };
    return replica;
  }

  #request(
    answer: (value: string) => TokenRequestResult,
    signal: AbortSignal,
    life: AbortSignal,
  ): Promise<TokenRequestResult> {
    const index = this.requestedAt.push(this.clock.now());
    return new Promise((resolve) => {
      const cancel = this.clock.after(this.latencyMs, () => resolve(answer(`token-${String(index)}`)));
      signal.addEventListener('abort', () => {
        cancel();
        resolve({ kind: 'unavailable', detail: 'the token request was abandoned' });
      });
      life.addEventListener('abort', cancel);
    });
  }
}

/** A clock whose timers end with their owner. */
function mortal(clock: ManualClock, life: AbortSignal, wallOffsetMs: number): Clock {
  const unlessDead = (run: () => void) => (): void => {
    if (!life.aborted) run();
  };
  return {
    now: () => clock.now(),
    wallNow: () => clock.wallNow() + wallOffsetMs,
    after: (delayMs, run) => clock.after(delayMs, unlessDead(run)),
    exactlyAt: (at, run) => clock.exactlyAt(at, unlessDead(run)),
  };
}
