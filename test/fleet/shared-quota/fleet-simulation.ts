/**
 * A fleet of throttles in virtual time before one limiter, sharing their quota by the script as it is, in a real Redis whose clock is
 * handed in. An exchange takes a virtual moment, and virtual time stands still while Redis works.
 */
import { createClient } from '@redis/client';
import { readMadeAt } from '../../../src/platform/origin-clock.ts';
import type { Cancel, Clock, Timer, TimerTarget } from '../../../src/platform/clock.ts';
import { parseReply, toScriptArguments } from '../../../src/fleet/shared-quota/redis-quota-store.ts';
import { buildExchangeScript } from '../../../src/fleet/shared-quota/quota-script.ts';
import { FleetMember } from '../../../src/fleet/shared-quota/fleet-member.ts';
import type { ReceivedCall } from '../../../src/throttle/declared/call-match.ts';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import { Heap } from '../../../src/throttle/queue/heap.ts';
import type {
  QuotaStore,
  QuotaListener,
  QuotaReply,
  QuotaUpdate,
  QuotaRequest,
} from '../../../src/fleet/shared-quota/quota-store.ts';
import { readRateLimitSignal } from '../../../src/throttle/signals/rate-limit-signal.ts';
import type { Permit, Throttle } from '../../../src/throttle/throttle.ts';
import { seeded, type Limiter } from '../../throttle/simulation.ts';

const WALL = Date.UTC(2026, 10, 1);
const EXCHANGE_MS = 1;

/** The script of the present format, with the time as its last argument. */
export const EXCHANGE_SCRIPT = buildExchangeScript('local now = tonumber(ARGV[#ARGV])');

/** A script whose reply ends with the number of messages that it published. */
function countMessages(script: string): string {
  return `
local published, server = 0, redis
local redis = {pcall = server.pcall, call = function(name, ...)
  if name == 'PUBLISH' then published = published + 1 end
  return server.call(name, ...)
end}
local function exchange()
${script}
end
local reply = exchange()
reply[#reply + 1] = published
return reply
`;
}

class PendingTimer {
  readonly expiresAt: number;
  readonly run: () => void;

  constructor(at: number, run: () => void) {
    this.expiresAt = at;
    this.run = run;
  }
}

/** Steps from timer to timer, and waits for real work in between. */
export class SimulationClock implements Clock {
  #now = 0;
  readonly #timers = new Heap<PendingTimer>((one, other) => one.expiresAt < other.expiresAt);
  readonly #work = new Set<Promise<unknown>>();

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#now + WALL;
  }

  after(delayMs: number, run: () => void): Cancel {
    return this.exactlyAt(this.#now + Math.max(0, delayMs), run);
  }

  startTimer(delayMs: number, target: TimerTarget): Timer {
    return { cancel: this.after(delayMs, () => target.onTimer()) };
  }

  exactlyAt(at: number, run: () => void): Cancel {
    const timer = new PendingTimer(Math.max(at, this.#now), run);
    this.#timers.update(timer, true);
    return () => this.#timers.remove(timer);
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.after(delayMs, resolve));
  }

  /** Virtual time waits for this. */
  async hold<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work);
    try {
      return await work;
    } finally {
      this.#work.delete(work);
    }
  }

  async runUntil(at: number): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#work.size > 0) {
        await Promise.allSettled(this.#work);
        continue;
      }
      const timer = this.#timers.first;
      if (timer === undefined || timer.expiresAt > at) break;
      this.#timers.remove(timer);
      this.#now = timer.expiresAt;
      timer.run();
    }
    this.#now = at;
  }
}

/** After an error reply that ends the connection the next attempt comes after up to this time. */
const RECONNECT_MS = 2_000;
/** Late replies after which a replica sends no more scripts, and the time in which replies in time end that state. */
const LATE_REPLIES = 3;
const DEGRADED_MS = 5_000;

/** What one replica knows of its connection. */
interface SimulatedConnection {
  listener: QuotaListener | undefined;
  isLost: boolean;
  /** No script can run before this instant. */
  usableAt: number;
  lateReplies: number;
}

/** A Redis with the script, whose clock is the world's. */
export class SimulatedRedis {
  readonly #client: Awaited<ReturnType<typeof connect>>;
  readonly #clock: SimulationClock;
  readonly #listeners = new Set<QuotaListener>();
  readonly #disconnected = new Set<QuotaStore>();
  readonly #random = seeded(1);
  /** By script. */
  readonly #hashes = new Map<string, string>();
  isDown = false;
  #generation = 0;
  dropsUpdates = false;
  /** Replies come too late to be used; the scripts run. */
  isSlow = false;
  /** Whether a reply is lost; the script has run. */
  losesReply: (request: QuotaRequest) => boolean = () => false;
  /** Called before each script: sets the real server to refuse writes, for example. */
  beforeScript: (() => Promise<unknown>) | undefined;
  /** Is called with each reply that arrives. */
  onReply: (request: QuotaRequest, reply: QuotaReply) => void = () => undefined;
  commands = 0;

  private constructor(client: Awaited<ReturnType<typeof connect>>, clock: SimulationClock) {
    this.#client = client;
    this.#clock = clock;
  }

  static async open(url: string, clock: SimulationClock): Promise<SimulatedRedis> {
    return new SimulatedRedis(await connect(url), clock);
  }

  /** The client of one replica. */
  createStore(key: string): QuotaStore {
    const connection: SimulatedConnection = { listener: undefined, isLost: false, usableAt: 0, lateReplies: 0 };
    const store: QuotaStore = {
      exchange: async (request) => {
        if (this.isDown || this.#disconnected.has(store) || this.#clock.now() < connection.usableAt) return undefined;
        if (this.isSlow && connection.lateReplies >= LATE_REPLIES) return undefined;
        this.commands++;
        await this.#clock.sleep(EXCHANGE_MS / 2);
        const life = this.#generation;
        const reply = await this.run(key, request).catch((error: unknown) => {
          this.#recordErrorReply(connection, error);
          return undefined;
        });
        await this.#clock.sleep(EXCHANGE_MS / 2);
        if (reply === undefined) return undefined;
        if (this.isSlow) {
          this.#recordLateReply(connection);
          return undefined;
        }
        if (connection.isLost) connection.listener?.onConnected();
        connection.isLost = false;
        connection.lateReplies = 0;
        // A request from before the crash gets no reply after it.
        if (life !== this.#generation || this.losesReply(request)) return undefined;
        this.onReply(request, reply);
        return reply;
      },
      listen: (listener) => {
        connection.listener = listener;
        this.#listeners.add(listener);
        this.#clock.after(1, () => listener.onConnected());
      },
    };
    return store;
  }

  /** As the script client: an error reply counts as a lost connection, and that of a read-only server ends it. */
  #recordErrorReply(connection: SimulatedConnection, error: unknown): void {
    const { message } = error as Error;
    if (message.includes('READONLY'))
      connection.usableAt = this.#clock.now() + (this.#random() + 1) * (RECONNECT_MS / 2);
    else if (!message.includes('OOM')) throw error;
    if (!connection.isLost) connection.listener?.onDisconnected();
    connection.isLost = true;
  }

  /** As the script client: after some of them, replies must have been in time for a while. */
  #recordLateReply(connection: SimulatedConnection): void {
    if (++connection.lateReplies < LATE_REPLIES) return;
    connection.usableAt = this.#clock.now() + DEGRADED_MS;
    connection.listener?.onDisconnected();
    connection.isLost = true;
  }

  /** Nothing that this one asks arrives any more. */
  disconnect(store: QuotaStore | undefined): void {
    if (store !== undefined) this.#disconnected.add(store);
  }

  reconnect(store: QuotaStore | undefined): void {
    if (store !== undefined) this.#disconnected.delete(store);
  }

  /** @param script takes the time as its last argument */
  async run(key: string, request: QuotaRequest, now = this.#clock.wallNow(), script = EXCHANGE_SCRIPT) {
    await this.#clock.hold(this.beforeScript?.() ?? Promise.resolve());
    const rest = [...toScriptArguments(request), now].map(String);
    const replies = await this.#clock.hold(this.#evaluate(script, ['1', key, ...rest]));
    const reply = parseReply(replies);
    if (reply !== undefined && replies.at(-1) === 1) this.#pushUpdate(reply);
    return reply;
  }

  /** By hash, as the script client does: with EVAL the server hashes the source at each call. */
  async #evaluate(script: string, rest: readonly string[]): Promise<unknown[]> {
    let sha1 = this.#hashes.get(script);
    if (sha1 === undefined) {
      sha1 = (await this.#client.sendCommand(['SCRIPT', 'LOAD', countMessages(script)])) as unknown as string;
      this.#hashes.set(script, sha1);
    }
    return (await this.#client.sendCommand(['EVALSHA', sha1, ...rest])) as unknown as unknown[];
  }

  /** SIGKILL, as the replicas see it. */
  crash(): void {
    this.isDown = true;
    this.#generation++;
    for (const listener of this.#listeners) listener.onDisconnected();
  }

  /** Back, with nothing in it unless it has kept its data; the replicas join one after the other. */
  async restart(spreadMs: number, hasKeptData = false): Promise<void> {
    if (!hasKeptData) await this.#clock.hold(this.#client.sendCommand(['FLUSHALL']));
    this.isDown = false;
    let delayMs = 0;
    for (const listener of this.#listeners) {
      this.#clock.after(delayMs, () => listener.onConnected());
      delayMs += spreadMs / this.#listeners.size;
    }
  }

  close(): void {
    this.#client.destroy();
  }

  #pushUpdate({ epoch, isFleetPaused, pausedUntil, rate, burst, replicaCount }: QuotaUpdate): void {
    const update = { epoch, isFleetPaused, pausedUntil, rate, burst, replicaCount };
    if (this.dropsUpdates) return;
    for (const listener of this.#listeners)
      this.#clock.after(EXCHANGE_MS, () => {
        if (!this.isDown) listener.onUpdate(update);
      });
  }
}

async function connect(url: string) {
  const client = createClient({ url, RESP: 2, socket: { reconnectStrategy: false } });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

export interface FleetSimulationOptions {
  readonly redis: SimulatedRedis;
  readonly clock: SimulationClock;
  readonly replicas: number;
  readonly limiter: Limiter;
  /** Open loop: calls per second offered to all together. Closed loop: clients of all together, each with one call at a time. */
  readonly load: { readonly perSecond: number } | { readonly clients: number };
  readonly rate?: number | 'auto';
  readonly burst?: number;
  /** `throttle.limits`. Default: none. */
  readonly limits?: readonly DeclaredLimit[];
  /** What every call is. Default: it has neither method nor path. */
  readonly call?: ReceivedCall | undefined;
  readonly seed?: number;
  readonly key?: string;
  /** Default: they lease over Redis. */
  readonly isAlone?: boolean;
  /** Way to the limiter, and way back, milliseconds: from, and how much more at random. Default: 2 and 3. */
  readonly oneWayMs?: readonly [number, number];
  /** The replicas begin to call this long after they have started, and within this time. Default: 0 and 100. */
  readonly callsAfterMs?: number;
  readonly callsWithinMs?: number;
}

export interface LimiterArrival {
  readonly at: number;
  readonly replica: number;
  readonly accepted: boolean;
}

export class FleetSimulation {
  readonly throttles: readonly Throttle[];
  /** Every arrival at the limiter. */
  readonly arrivals: LimiterArrival[] = [];
  failed = 0;
  readonly #options: FleetSimulationOptions;
  readonly #stores: readonly QuotaStore[];
  readonly #stoppedReplicas = new Set<number>();
  #isStopped = false;

  constructor(options: FleetSimulationOptions) {
    const { redis, clock, replicas, rate = 'auto', burst = 1, seed = 1, key = 'quota' } = options;
    this.#options = options;
    const random = seeded(seed);
    this.#stores = Array.from({ length: replicas }, () => redis.createStore(key));
    const settings = { limits: options.limits, rate, burst, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000 };
    this.throttles = this.#stores.map((store, index) => {
      const id = `replica-${String(index).padStart(2, '0')}`;
      return createThrottle({
        route: 'default',
        throttle: settings,
        // Calls beyond the quota wait.
        queue: { max: 100_000, timeoutMs: 1_000_000 },
        clock,
        random,
        observe: () => undefined,
        fleet: options.isAlone === true ? undefined : new FleetMember({ store, id, settings, clock }),
      });
    });
    const { load } = options;
    if ('clients' in load)
      for (let client = 0; client < load.clients; client++) void this.#callInLoop(client % replicas, random);
    else for (let index = 0; index < replicas; index++) this.#offer(index, load.perSecond / replicas, random);
  }

  stop(): void {
    this.#isStopped = true;
    for (const throttle of this.throttles) throttle.shutDown();
  }

  /** Nothing more is offered; what waits goes on. */
  stopLoad(): void {
    this.#isStopped = true;
  }

  /** One replica is gone: it asks for nothing and calls no more. */
  stopReplica(index: number): void {
    this.#stoppedReplicas.add(index);
    this.#options.redis.disconnect(this.#stores[index]);
  }

  /** One replica gets no reply for this time. */
  cutOff(index: number, ms: number): void {
    const { redis, clock } = this.#options;
    redis.disconnect(this.#stores[index]);
    clock.after(ms, () => redis.reconnect(this.#stores[index]));
  }

  /** The most by which arrivals were ever ahead of a rate: a burst, when it is kept. */
  largestBurst(perSecond: number): number {
    let debt = 0;
    let last = -Infinity;
    let largest = 0;
    for (const { at } of this.arrivals) {
      debt = Math.max(0, debt - ((at - last) * perSecond) / 1000) + 1;
      last = at;
      largest = Math.max(largest, debt);
    }
    return largest;
  }

  /** Calls between two instants. */
  count(from: number, to: number) {
    const within = this.arrivals.filter(({ at }) => at >= from && at < to);
    const accepted = within.filter((one) => one.accepted);
    const each = this.throttles.map((_, index) => accepted.filter(({ replica }) => replica === index).length);
    const sum = each.reduce((total, one) => total + one, 0);
    const squares = each.reduce((total, one) => total + one * one, 0);
    return {
      sent: within.length,
      accepted: accepted.length,
      refused: within.length - accepted.length,
      refusedShare: (within.length - accepted.length) / Math.max(1, within.length),
      jain: (sum * sum) / (each.length * Math.max(1, squares)),
      each,
    };
  }

  #offer(index: number, perSecond: number, random: () => number): void {
    const { clock } = this.#options;
    const next = (): void => {
      if (this.#isStopped) return;
      if (!this.#stoppedReplicas.has(index)) void this.#call(index, random);
      clock.after((-Math.log(1 - random()) * 1000) / perSecond, next);
    };
    clock.after(this.#startDelayMs(random), next);
  }

  async #callInLoop(index: number, random: () => number): Promise<void> {
    await this.#options.clock.sleep(this.#startDelayMs(random));
    while (!this.#isStopped && !this.#stoppedReplicas.has(index)) await this.#call(index, random);
  }

  #startDelayMs(random: () => number): number {
    const { callsAfterMs = 0, callsWithinMs = 100 } = this.#options;
    return callsAfterMs + random() * callsWithinMs;
  }

  async #call(index: number, random: () => number): Promise<void> {
    const { clock, limiter, oneWayMs: [leastMs, spreadMs] = [2, 3] } = this.#options;
    const attempt = async (permit: Permit): Promise<boolean> => {
      // The calls that wait in a replica end with it.
      if (this.#stoppedReplicas.has(index)) await new Promise<never>(() => undefined);
      await clock.sleep(leastMs + random() * spreadMs);
      const { accepted, fields } = limiter(clock.now());
      this.arrivals.push({ at: clock.now(), replica: index, accepted });
      await clock.sleep(leastMs + random() * spreadMs);
      const signal = readRateLimitSignal(
        429,
        new Map(Object.entries(fields ?? {})),
        readMadeAt(undefined, undefined, clock.wallNow()),
      );
      permit.report(accepted ? { kind: 'accepted' } : { kind: 'rate-limited', signal });
      permit.release();
      return accepted;
    };
    try {
      const { call } = this.#options;
      const ticket = this.throttles[index]!.enter(clock.now() + 1_000_000, undefined, true, '', clock.now(), call);
      await ticket.waitForBodySlot();
      while (!(await attempt(await ticket.waitForPermit())));
      ticket.leave();
    } catch {
      this.failed++;
    }
  }
}
