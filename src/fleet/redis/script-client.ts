/**
 * The door to what replicas share over Redis or Valkey: scripts, each answered within a fixed time or not at all. Whoever asks must
 * be able to go on alone: "not at all" is an ordinary answer here. Keys and scripts are those of the boards built on it;
 * keeping a connection is standing-link's.
 */
import type { Cancel, Clock, Random } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { ConnectionHealth } from './connection-health.ts';
import type { FleetConnectionState } from './connection-health.ts';
import { toRedisFault, RedisFault } from './redis-fault.ts';
import type { RedisConnection } from './redis-connection.ts';
import { runScript } from './script.ts';
import type { ScriptArguments, ScriptReply, Script } from './script.ts';
import { ReconnectingConnection } from './reconnecting-connection.ts';

export interface RedisScriptClientOptions {
  /** Opens one connection within a bounded time, or rejects with a RedisFault. */
  readonly open: () => Promise<RedisConnection>;
  /** Longest wait for the reply to one script, milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
}

export interface RedisScriptClient {
  /** Begins to connect, in the background. */
  start(): void;
  /**
   * Runs a script on one key. Resolves within the time-out, and at once while there is no connection or the server owes an
   * answer; undefined then, and the server may still run the script later. Never rejects.
   */
  run(script: Script, key: string, args: ScriptArguments): Promise<ScriptReply | undefined>;
  /** As `run`, for work that is rare and worth a wait: its answer may be late by a quarter of a second. */
  runWithLongerTimeout(script: Script, key: string, args: ScriptArguments): Promise<ScriptReply | undefined>;
  /**
   * Whether running makes sense: at once, or after a wait where that is likely to change it, for the end of the first
   * attempt to connect or for a late answer. For the same kind of work.
   */
  whenReady(): Promise<boolean>;
  state(): FleetConnectionState;
  /** Lets go: waits for the scripts under way, each within the time-out, then ends the connection. */
  close(): Promise<void>;
}

/** How long a late answer is waited for by work that may wait. */
const LATE_REPLY_MS = 250;
/** A server that owes an answer for so long is given up; a new connection shows whether it is back. */
const MAX_STALL_MS = 1000;
/** Keeps an idle connection from being cut on its way, and shows a server that hangs before it is needed. */
const HEARTBEAT_MS = 30_000;
/** Error replies after which a new connection may reach a server that is better off. */
const RECONNECT_REPLY_CODES: ReadonlySet<string> = new Set(['READONLY', 'MASTERDOWN', 'LOADING']);

/** A fleet that has not begun to connect. */
export function createRedisScriptClient(options: RedisScriptClientOptions): RedisScriptClient {
  return new ReconnectingScriptClient(options);
}

interface Stall {
  readonly connection: RedisConnection;
  readonly cancel: Cancel;
}

class ReconnectingScriptClient implements RedisScriptClient {
  readonly #options: RedisScriptClientOptions;
  readonly #connection: ReconnectingConnection;
  readonly #health: ConnectionHealth;
  readonly #pendingRuns = new Set<Promise<unknown>>();
  readonly #readyWaiters = new Set<() => void>();
  /** The first attempt to connect is under way. */
  #isFirstConnect = false;
  #stall: Stall | undefined;
  #cancelHeartbeat: Cancel | undefined;
  #isClosed = false;

  constructor(options: RedisScriptClientOptions) {
    const { open, clock, random, observe } = options;
    this.#options = options;
    this.#health = new ConnectionHealth(clock, observe);
    this.#connection = new ReconnectingConnection({
      open,
      clock,
      random,
      onConnected: () => {
        this.#isFirstConnect = false;
        this.#health.recordConnected();
        this.#scheduleHeartbeat();
        this.#notifyWaiters();
      },
      onDisconnected: (fault) => {
        this.#isFirstConnect = false;
        this.#endStall();
        this.#cancelHeartbeat?.();
        this.#health.recordDisconnected(fault);
        this.#notifyWaiters();
      },
    });
  }

  start(): void {
    if (this.#isClosed) return;
    this.#isFirstConnect = true;
    this.#connection.start();
  }

  run(script: Script, key: string, args: ScriptArguments): Promise<ScriptReply | undefined> {
    return this.#run(script, key, args, this.#options.timeoutMs);
  }

  runWithLongerTimeout(script: Script, key: string, args: ScriptArguments): Promise<ScriptReply | undefined> {
    return this.#run(script, key, args, this.#options.timeoutMs + LATE_REPLY_MS);
  }

  async whenReady(): Promise<boolean> {
    if (this.#isClosed || (!this.#isFirstConnect && this.#stall === undefined))
      return this.#usableConnection() !== undefined;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        cancel?.();
        this.#readyWaiters.delete(wake);
        resolve();
      };
      // The first attempt to connect ends by itself.
      const cancel = this.#isFirstConnect ? undefined : this.#options.clock.after(LATE_REPLY_MS, wake);
      this.#readyWaiters.add(wake);
    });
    return this.#usableConnection() !== undefined;
  }

  state(): FleetConnectionState {
    return this.#health.state();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#notifyWaiters();
    await Promise.all(this.#pendingRuns);
    this.#endStall();
    this.#cancelHeartbeat?.();
    this.#connection.close();
  }

  #usableConnection(): RedisConnection | undefined {
    return this.#stall === undefined && !this.#isClosed ? this.#connection.current : undefined;
  }

  #notifyWaiters(): void {
    for (const wake of this.#readyWaiters) wake();
  }

  async #run(script: Script, key: string, args: ScriptArguments, limitMs: number): Promise<ScriptReply | undefined> {
    const link = this.#usableConnection();
    if (link === undefined) return undefined;
    const answer = runScript(link, script, key, args);
    this.#trackReply(link, answer, (fault) => this.#recordReply(link, fault));
    const work = this.#withTimeout(answer, limitMs);
    this.#pendingRuns.add(work);
    const reply = await work;
    this.#pendingRuns.delete(work);
    return reply;
  }

  /** Settles once: with the reply, or without one when it is late or an error. */
  #withTimeout(answer: Promise<ScriptReply>, limitMs: number): Promise<ScriptReply | undefined> {
    const { clock, observe } = this.#options;
    return new Promise((resolve) => {
      let isSettled = false;
      const settle = (outcome: 'ok' | 'timeout' | 'error', reply?: ScriptReply): void => {
        if (isSettled) return;
        isSettled = true;
        cancel();
        observe({ kind: 'fleet-command', outcome });
        resolve(reply);
      };
      const cancel = afterPendingReads(clock, limitMs, () => settle('timeout'));
      answer.then(
        (reply) => settle('ok', reply),
        () => settle('error'),
      );
    });
  }

  /** Sees to it that nobody else waits for a server that owes an answer, and that one for too long is left. */
  #trackReply(link: RedisConnection, answer: Promise<unknown>, note: (fault?: RedisFault) => void): void {
    const cancel = afterPendingReads(this.#options.clock, this.#options.timeoutMs, () => this.#startStall(link));
    const end = (fault?: RedisFault): void => {
      cancel();
      // Of an end of the connection the connection itself tells.
      if (this.#connection.current !== link || (fault !== undefined && fault.replyCode === undefined)) return;
      if (this.#stall?.connection === link) this.#endStall();
      note(fault);
      this.#notifyWaiters();
    };
    answer.then(
      () => end(),
      (error: unknown) => end(toRedisFault(error)),
    );
  }

  #scheduleHeartbeat(): void {
    this.#cancelHeartbeat = this.#options.clock.after(HEARTBEAT_MS, () => {
      const link = this.#usableConnection();
      if (link !== undefined) this.#trackReply(link, link.send(['PING']), () => undefined);
      this.#scheduleHeartbeat();
    });
  }

  #startStall(link: RedisConnection): void {
    if (this.#stall !== undefined || this.#connection.current !== link) return;
    const { clock, timeoutMs } = this.#options;
    const cancel = clock.after(Math.max(0, MAX_STALL_MS - timeoutMs), () => {
      this.#connection.drop(link, new RedisFault(`did not answer for ${MAX_STALL_MS} ms`));
    });
    this.#stall = { connection: link, cancel };
  }

  #endStall(): void {
    this.#stall?.cancel();
    this.#stall = undefined;
  }

  /** A script was answered, however late. */
  #recordReply(link: RedisConnection, fault: RedisFault | undefined): void {
    this.#health.recordReply(fault);
    if (fault?.replyCode !== undefined && RECONNECT_REPLY_CODES.has(fault.replyCode))
      this.#connection.drop(link, fault);
  }
}

/** As the clock's, yet what has arrived while this process itself was busy is read first. */
function afterPendingReads(clock: Clock, delayMs: number, run: () => void): Cancel {
  let isCancelled = false;
  const cancel = clock.after(delayMs, () => {
    setImmediate(() => {
      if (!isCancelled) run();
    });
  });
  return () => {
    isCancelled = true;
    cancel();
  };
}
