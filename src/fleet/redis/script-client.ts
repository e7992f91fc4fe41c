/**
 * Runs scripts on Redis or Valkey, each within a fixed time. No reply is a normal result here: the caller must be able to go on
 * without Redis. While replies are too late (latency-monitor.ts), only heartbeats are sent. Keys and scripts belong to the stores; the
 * connection is kept open by reconnecting-connection.ts and checked by connection-check.ts.
 */
import { waitAtMost, type Cancel, type Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import { ConnectionHealth, type FleetConnectionState } from './connection-health.ts';
import { findModeFault, CHECK_SCRIPT, checkKey, checkScripts } from './connection-check.ts';
import { LatencyMonitor } from './latency-monitor.ts';
import { toRedisFault, RedisFault } from './redis-fault.ts';
import type { RedisConnection } from './redis-connection.ts';
import { runScript, type ScriptArguments, type ScriptReply, type Script } from './script.ts';
import { ReconnectingConnection, type ReconnectingConnectionOptions } from './reconnecting-connection.ts';

export interface RedisScriptClientOptions extends Pick<ReconnectingConnectionOptions, 'open' | 'clock' | 'random'> {
  /** Longest wait for the reply to one script, milliseconds. */
  readonly timeoutMs: number;
  /** Begins the names of the keys on which a new connection is checked. */
  readonly keyPrefix: string;
  readonly observe: EventObserver;
}

/** How long `runWithLongerTimeout` and `whenReady` wait for a late reply. */
const LATE_REPLY_MS = 250;
/** After this time without a reply the connection is replaced. */
const MAX_STALL_MS = 1000;
/** Keeps an idle connection open, and detects a server that hangs before it is needed. */
const HEARTBEAT_MS = 30_000;
/** The same while the last reply was late. */
const HEARTBEAT_AFTER_LATE_MS = 500;
/** Error replies after which a new connection may reach another server. */
const RECONNECT_REPLY_CODES: ReadonlySet<string> = new Set(['READONLY', 'MASTERDOWN', 'LOADING']);

type ConnectionPhase =
  /** Or connected again, and not checked yet. */
  | 'disconnected'
  /** The first attempt, with its check. */
  | 'first-connect'
  /** Scripts run, and replies are too late. */
  | 'checked'
  /** Scripts run, and replies are in time. */
  | 'usable';

export class RedisScriptClient {
  readonly #options: RedisScriptClientOptions;
  readonly #connection: ReconnectingConnection;
  readonly #health: ConnectionHealth;
  readonly #pendingRuns = new Set<Promise<unknown>>();
  readonly #readyWaiters = new Set<(woken: undefined) => void>();
  readonly #latencies = new LatencyMonitor();
  #phase: ConnectionPhase = 'disconnected';
  /** Some proxies close the connection on INFO: the next attempt does without it. */
  #wasLostAtInfo = false;
  #lastLateReplyAt = -Infinity;
  /** The connection on which the server owes a reply. */
  #stall: { readonly connection: RedisConnection; readonly cancel: Cancel } | undefined;
  #cancelHeartbeat: Cancel | undefined;
  #isClosed = false;

  constructor(options: RedisScriptClientOptions) {
    const { open, clock, random, observe, timeoutMs } = options;
    this.#options = options;
    this.#health = new ConnectionHealth({ clock, observe, timeoutMs });
    this.#connection = new ReconnectingConnection({
      open,
      clock,
      random,
      onConnected: () => void this.#checkConnection(),
      onDisconnected: (fault) => {
        this.#phase = 'disconnected';
        this.#endStall();
        this.#cancelHeartbeat?.();
        this.#health.recordDisconnected(fault);
        this.#notifyWaiters();
      },
    });
  }

  start(): void {
    if (this.#isClosed) return;
    this.#phase = 'first-connect';
    this.#connection.start();
  }

  /**
   * Runs a script on one key. Never rejects. Undefined when there is no reply within the time-out (the server may still run the
   * script later), and at once without a connection, while the server owes a late reply, or while its replies are too late in general.
   */
  async run(
    script: Script,
    key: string,
    args: ScriptArguments,
    limitMs = this.#options.timeoutMs,
  ): Promise<ScriptReply | undefined> {
    const connection = this.#usableConnection();
    if (connection === undefined) return undefined;
    const reply = runScript(connection, script, key, args);
    void this.#trackReply(connection, reply, (fault) => this.#recordReply(connection, fault));
    const run = this.#withTimeout(reply, limitMs);
    this.#pendingRuns.add(run);
    const result = await run;
    this.#pendingRuns.delete(run);
    return result;
  }

  /** As `run`, with 250 ms more: for rare scripts that are worth a wait. */
  runWithLongerTimeout(script: Script, key: string, args: ScriptArguments): Promise<ScriptReply | undefined> {
    return this.run(script, key, args, this.#options.timeoutMs + LATE_REPLY_MS);
  }

  /**
   * Whether a script can run now. Waits if that is likely to make it so: for the end of the first attempt to connect, or up to
   * 250 ms for a late reply.
   */
  async whenReady(): Promise<boolean> {
    const isFirstConnect = this.#phase === 'first-connect';
    const mayBecomeReady = isFirstConnect || (this.#phase === 'usable' && this.#stall !== undefined);
    if (this.#isClosed || !mayBecomeReady) return this.#usableConnection() !== undefined;
    const { promise: woken, resolve: wake } = Promise.withResolvers<undefined>();
    this.#readyWaiters.add(wake);
    // The first attempt to connect has its own time-out.
    await (isFirstConnect ? woken : waitAtMost(woken, this.#options.clock, LATE_REPLY_MS));
    this.#readyWaiters.delete(wake);
    return this.#usableConnection() !== undefined;
  }

  state(): FleetConnectionState {
    return this.#health.state();
  }

  /** Waits for the scripts in flight, each within its time-out, then closes the connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#notifyWaiters();
    await Promise.all(this.#pendingRuns);
    this.#endStall();
    this.#cancelHeartbeat?.();
    this.#connection.close();
  }

  #usableConnection(): RedisConnection | undefined {
    const isUsable = this.#phase === 'usable' && this.#stall === undefined && !this.#isClosed;
    return isUsable ? this.#connection.current : undefined;
  }

  async #checkConnection(): Promise<void> {
    const connection = this.#connection.current;
    if (connection === undefined) return;
    try {
      await this.#trackReply(connection, checkScripts(connection, this.#options.keyPrefix));
      const fault = await this.#findModeFault(connection);
      if (fault !== undefined) throw fault;
      if (this.#latencies.isLastLate) await this.#sendHeartbeat(connection);
    } catch (error) {
      this.#connection.drop(connection, toRedisFault(error));
    }
    if (this.#connection.current !== connection) return;
    this.#phase = 'checked';
    this.#updateHealth();
    this.#scheduleHeartbeat();
    this.#notifyWaiters();
  }

  async #findModeFault(connection: RedisConnection): Promise<RedisFault | undefined> {
    const isAllowed = !this.#wasLostAtInfo;
    // Stays so if the connection is lost before the reply.
    this.#wasLostAtInfo = isAllowed;
    const fault = isAllowed ? await this.#trackReply(connection, findModeFault(connection)) : undefined;
    this.#wasLostAtInfo = false;
    return fault;
  }

  #sendHeartbeat(connection: RedisConnection): Promise<ScriptReply> {
    return this.#trackReply(connection, runScript(connection, CHECK_SCRIPT, checkKey(this.#options.keyPrefix), []));
  }

  #notifyWaiters(): void {
    for (const wake of this.#readyWaiters) wake(undefined);
  }

  /** Undefined when the reply is late or an error. */
  #withTimeout(pending: Promise<ScriptReply>, limitMs: number): Promise<ScriptReply | undefined> {
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
      pending.then(
        (reply) => settle('ok', reply),
        () => settle('error'),
      );
    });
  }

  /** While a reply is late, no other script is sent; if it is too late, the connection is dropped. */
  #trackReply<T>(connection: RedisConnection, reply: Promise<T>, record?: (fault?: RedisFault) => void): Promise<T> {
    const { clock, timeoutMs } = this.#options;
    const sentAt = clock.now();
    let isLate = false;
    const cancel = afterPendingReads(clock, timeoutMs, () => {
      isLate = true;
      this.#startStall(connection);
    });
    const end = (fault?: RedisFault): void => {
      cancel();
      // The end of the connection is reported by the connection.
      if (this.#connection.current !== connection || (fault !== undefined && fault.replyCode === undefined)) return;
      if (this.#stall?.connection === connection) this.#endStall();
      this.#recordLatency(sentAt, isLate);
      record?.(fault);
      // The check of the first connection is longer than one reply.
      if (this.#phase !== 'first-connect') this.#notifyWaiters();
    };
    reply.then(
      () => end(),
      (error: unknown) => end(toRedisFault(error)),
    );
    return reply;
  }

  #recordLatency(sentAt: number, isLate: boolean): void {
    const now = this.#options.clock.now();
    const wasLate = this.#latencies.isLastLate;
    if (!isLate) this.#latencies.recordInTime(now);
    // Commands that were sent together are late together: that is one delay.
    else if (sentAt >= this.#lastLateReplyAt) {
      this.#lastLateReplyAt = now;
      this.#latencies.recordLate(now, now - sentAt);
    }
    if (this.#phase !== 'checked' && this.#phase !== 'usable') return;
    this.#updateHealth();
    if (isLate && !wasLate) this.#scheduleHeartbeat();
  }

  /** A connection is used from its first reply in time on, until replies are too late. */
  #updateHealth(): void {
    if (this.#latencies.isDegraded) {
      this.#phase = 'checked';
      this.#health.recordDegraded(this.#latencies.describe());
    } else if (this.#phase === 'checked' && !this.#latencies.isLastLate) {
      this.#phase = 'usable';
      this.#health.recordConnected();
    }
  }

  #scheduleHeartbeat(): void {
    this.#cancelHeartbeat?.();
    const delayMs = this.#latencies.isLastLate || this.#phase !== 'usable' ? HEARTBEAT_AFTER_LATE_MS : HEARTBEAT_MS;
    this.#cancelHeartbeat = this.#options.clock.after(delayMs, () => {
      const connection = this.#connection.current;
      // The reply that is owed is a heartbeat as well.
      if (connection !== undefined && this.#stall === undefined && !this.#isClosed)
        this.#sendHeartbeat(connection).catch(() => undefined);
      this.#scheduleHeartbeat();
    });
  }

  #startStall(connection: RedisConnection): void {
    if (this.#stall !== undefined || this.#connection.current !== connection) return;
    const { clock, timeoutMs } = this.#options;
    const cancel = clock.after(Math.max(0, MAX_STALL_MS - timeoutMs), () => {
      this.#latencies.recordLate(clock.now(), MAX_STALL_MS);
      this.#connection.drop(connection, new RedisFault(`did not answer for ${MAX_STALL_MS} ms`));
    });
    this.#stall = { connection, cancel };
  }

  #endStall(): void {
    this.#stall?.cancel();
    this.#stall = undefined;
  }

  #recordReply(connection: RedisConnection, fault: RedisFault | undefined): void {
    this.#health.recordReply(fault);
    if (fault === undefined) return;
    if (fault.isLasting || RECONNECT_REPLY_CODES.has(fault.replyCode ?? '')) this.#connection.drop(connection, fault);
  }
}

/** A timer that first lets the event loop read replies that arrived while this process was busy. */
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
