/**
 * The open connections of the proxy port over all its address families: how many may be open, which is closed for a new one, which is
 * rejected, which is not read while the request heads take too much memory. Also limits the requests under way.
 */
import type { Socket } from 'node:net';
import { closeAtOnce } from '../exchange/connection-end.ts';
import type { Clock } from '../platform/clock.ts';
import { ConnectionSlots } from '../platform/connection-slots.ts';
import type { SidecarError } from '../platform/errors.ts';
import type { EventObserver } from '../telemetry/events.ts';
import { pauseReading, resumeReading } from './connection-reading.ts';
import { TOO_MANY_CONNECTIONS, TOO_MANY_PIPELINED, TOO_MANY_REQUESTS } from './listener-errors.ts';

export interface PortLimits {
  readonly connections: number;
  /** Rejected connections that may stay open until their clients have read the reply. */
  readonly rejectedConnections: number;
  /** Requests under way at once, waiting ones included. */
  readonly requests: number;
  /** Memory for the heads of pending requests; beyond it, connections without a pending request are not read. */
  readonly headBytes: number;
}

export interface OpenConnectionsOptions {
  readonly limits: PortLimits;
  readonly clock: Clock;
  readonly observe: EventObserver;
  /** Replies on a connection that is rejected or displaced, and ends it. */
  readonly reject: (socket: Socket, error: SidecarError) => void;
  /** Called when a connection has closed that has pending requests. */
  readonly onLost: (socket: Socket) => void;
}

/** Pending requests of one connection; node:http parses all pipelined requests of a packet at once. */
const MAX_PIPELINED = 64;
/** Time for a request head; only then may a new connection displace this one. */
const EVICTION_GRACE_MS = 1000;

/** Reading begins again when so much of the limit is in use: each pause is for many requests. */
const RESUMED_SHARE = 0.8;

const WARNING_INTERVAL_MS = 60_000;
/** The longest turn of the event loop that counts as idle. */
const SHORT_LOOP_TURN_MS = 0.1;
/** Ends the wait for the backlog when the clock does not move either. */
const MAX_LOOP_TURNS = 10_000;

export class OpenConnections {
  readonly #options: OpenConnectionsOptions;
  readonly #slots: ConnectionSlots;
  readonly #rejected = new Set<Socket>();
  #acceptedCount = 0;
  #emptyWaiters: (() => void)[] = [];
  #nextWarningAt = -Infinity;
  #nextPauseWarningAt = -Infinity;
  /** Connections without a pending request are not read. */
  #isPaused = false;
  #rejectedCount = 0;
  #displacedCount = 0;

  constructor(options: OpenConnectionsOptions) {
    this.#options = options;
    this.#slots = new ConnectionSlots(options.limits.connections, EVICTION_GRACE_MS, options.clock);
  }

  state(): { readonly connections: number; readonly connectionsLimit: number; readonly requestsLimit: number } {
    const { connections, requests } = this.#options.limits;
    return { connections: this.#slots.size, connectionsLimit: connections, requestsLimit: requests };
  }

  /** To be called when the given limits have changed: idle connections beyond them are closed. */
  applyLimits(): void {
    for (const socket of this.#slots.resize(this.#options.limits.connections)) socket.destroy();
  }

  /** Tracks a new connection until it closes. False when it is rejected: nothing may be read from it. */
  accept(socket: Socket): boolean {
    // A paused connection may hold a request that has not been read.
    const decision = this.#slots.add(socket, !this.#isPaused);
    if (decision.kind === 'reject') {
      this.#rejectedCount++;
      this.#warn();
      this.#reject(socket);
      return false;
    }
    this.#acceptedCount++;
    socket.once('close', () => this.#remove(socket));
    // Once node:http has attached its parser, and before anything is read.
    if (this.#isPaused) process.nextTick(() => this.#isPaused && pauseReading(socket));
    if (decision.kind === 'displace') {
      this.#displacedCount++;
      this.#warn();
      // For a client that has had its responses this looks like the end of the keep-alive time.
      if (decision.isNew) this.#reject(decision.socket);
      else decision.socket.destroy();
    }
    return true;
  }

  /**
   * A request has arrived; its connection cannot be displaced until `endRequest`.
   * @param headBytes the memory that its head takes
   * @param activeRequests the number of requests under way, without this one
   * @returns the error to reject it with when a limit is reached
   */
  beginRequest(socket: Socket, headBytes: number, activeRequests: number): SidecarError | undefined {
    const { limits } = this.#options;
    const pending = this.#slots.beginRequest(socket, headBytes);
    if (!this.#isPaused && this.#slots.headBytes > limits.headBytes) this.#pause();
    if (pending > (this.#isPaused ? 1 : MAX_PIPELINED)) return TOO_MANY_PIPELINED;
    return activeRequests < limits.requests ? undefined : TOO_MANY_REQUESTS;
  }

  /** The connection leaves HTTP/1.1: it is never displaced. */
  handOver(socket: Socket): void {
    this.#slots.beginRequest(socket);
  }

  /**
   * To be called once for each `beginRequest`.
   * @param now what the clock has just given. Default: it is read
   */
  endRequest(socket: Socket, now = this.#options.clock.now()): void {
    const isWaiting = this.#slots.endRequest(socket, now);
    if (!this.#isPaused) return;
    if (isWaiting) pauseReading(socket);
    this.#resumeBelowLimit();
  }

  /**
   * Resolves when the connections in the kernel's backlog have been accepted: after a turn of the event loop that brought none and was
   * short. What counts as short grows with the time waited, up to `maxWaitMs`.
   */
  async whenBacklogAccepted(maxWaitMs: number): Promise<void> {
    const { clock } = this.#options;
    // Between two immediates the event loop polls the port once.
    await waitOneLoopTurn();
    const startedAt = clock.now();
    let [turnAt, isQuiet] = [startedAt, false];
    for (let turn = 0; !isQuiet && turn < MAX_LOOP_TURNS && turnAt - startedAt < maxWaitMs; turn++) {
      const before = this.#acceptedCount;
      await waitOneLoopTurn();
      const now = clock.now();
      isQuiet = this.#acceptedCount === before && now - turnAt < SHORT_LOOP_TURN_MS + (now - startedAt) / 50;
      turnAt = now;
    }
  }

  whenEmpty(): Promise<void> {
    if (this.#slots.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#emptyWaiters.push(resolve));
  }

  closeAll(): void {
    for (const socket of [...this.#slots.sockets, ...this.#rejected]) closeAtOnce(socket);
  }

  /** A rejected connection stays open until its client has read the reply; beyond the limit the oldest of them is closed. */
  #reject(socket: Socket): void {
    const { reject, limits } = this.#options;
    if (this.#rejected.size >= limits.rejectedConnections) {
      const [oldest] = this.#rejected;
      oldest?.destroy();
      if (oldest !== undefined) this.#rejected.delete(oldest);
    }
    this.#rejected.add(socket);
    socket.once('close', () => this.#rejected.delete(socket));
    reject(socket, TOO_MANY_CONNECTIONS);
  }

  #remove(socket: Socket): void {
    if (this.#slots.remove(socket) > 0) this.#options.onLost(socket);
    if (this.#isPaused) this.#resumeBelowLimit();
    if (this.#slots.size > 0) return;
    for (const resolve of this.#emptyWaiters.splice(0)) resolve();
  }

  /** A connection with a pending request is read on: the request may wait for its body. */
  #pause(): void {
    this.#isPaused = true;
    for (const socket of this.#slots.waiting()) pauseReading(socket);
    const { limits, clock, observe } = this.#options;
    if (clock.now() < this.#nextPauseWarningAt) return;
    this.#nextPauseWarningAt = clock.now() + WARNING_INTERVAL_MS;
    const message =
      `the heads of pending requests take ${String(Math.round(limits.headBytes / 1024))} KiB, the limit that the memory allows: ` +
      'further requests are not read until others have ended; raise the memory limit, or send fewer or smaller header fields';
    observe({ kind: 'warning', message });
  }

  #resumeBelowLimit(): void {
    if (this.#slots.headBytes > RESUMED_SHARE * this.#options.limits.headBytes) return;
    this.#isPaused = false;
    for (const socket of this.#slots.waiting()) resumeReading(socket);
  }

  #warn(): void {
    const { limits, clock, observe } = this.#options;
    if (clock.now() < this.#nextWarningAt) return;
    this.#nextWarningAt = clock.now() + WARNING_INTERVAL_MS;
    const message =
      `the limit of ${String(limits.connections)} client connections is reached (listen.maxConnections, or less where descriptors or memory allow less); ` +
      `refused so far: ${String(this.#rejectedCount)}, closed while waiting: ${String(this.#displacedCount)}`;
    observe({ kind: 'warning', message });
  }
}

function waitOneLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
