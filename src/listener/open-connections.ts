/**
 * The open connections of the proxy port, those of all its address families together, and the requests on them: how many there may be, which
 * give way or are refused, and their end. What is said on them is proxy-server's.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../platform/clock.ts';
import { ConnectionSlots } from '../platform/connection-slots.ts';
import type { SidecarError } from '../platform/errors.ts';
import type { EventObserver } from '../telemetry/events.ts';
import { TOO_MANY_CONNECTIONS, TOO_MANY_PIPELINED, TOO_MANY_REQUESTS } from './listener-errors.ts';

/** What a port may hold. */
export interface PortLimits {
  /** Connections that are served at once. */
  readonly connections: number;
  /** Connections beyond those that may stay open for a moment, to read why they are refused. */
  readonly refusedConnections: number;
  /** Requests under way at once, those that wait included. */
  readonly requests: number;
}

export interface OpenConnectionsOptions {
  readonly limits: PortLimits;
  readonly clock: Clock;
  readonly observe: EventObserver;
  /** Replies on a connection that is not served, or no longer, and ends it. */
  readonly refuse: (socket: Socket, error: SidecarError) => void;
}

/** Requests of one connection that may be without a response; node:http reads a packet of pipelined requests as a whole. */
const MAX_PIPELINED = 64;
/** What a client may take for its head before its connection may be given to another one. */
const EVICTION_GRACE_MS = 1000;

/** A full port is told of at most this often. */
const WARNING_INTERVAL_MS = 60_000;
/** A turn of the event loop with next to no work in it; one in which the machine stops the process is longer. */
const SHORT_LOOP_TURN_MS = 0.1;
/** After which a port that never falls quiet is given up on, by a clock that stands still as well. */
const MAX_LOOP_TURNS = 10_000;

export class OpenConnections {
  readonly #options: OpenConnectionsOptions;
  readonly #slots: ConnectionSlots;
  readonly #refused = new Set<Socket>();
  #acceptedCount = 0;
  #emptyWaiters: (() => void)[] = [];
  #nextWarningAt = -Infinity;
  #refusedCount = 0;
  #displacedCount = 0;

  constructor(options: OpenConnectionsOptions) {
    this.#options = options;
    this.#slots = new ConnectionSlots(options.limits.connections, EVICTION_GRACE_MS, options.clock);
  }

  /** How many are open, and the limits of the port. */
  state(): { readonly connections: number; readonly connectionsLimit: number; readonly requestsLimit: number } {
    const { connections, requests } = this.#options.limits;
    return { connections: this.#slots.size, connectionsLimit: connections, requestsLimit: requests };
  }

  /** Keeps a new connection in mind until it ends. False when it is refused: nothing may be read from it. */
  accept(socket: Socket): boolean {
    const decision = this.#slots.add(socket);
    if (decision.kind === 'refuse') {
      this.#refusedCount++;
      this.#warn();
      this.#refuse(socket);
      return false;
    }
    this.#acceptedCount++;
    socket.once('close', () => this.#remove(socket));
    if (decision.kind === 'displace') {
      this.#displacedCount++;
      this.#warn();
      // A client that has had its responses sees what it sees when the idle time is up.
      if (decision.isNew) this.#refuse(decision.socket);
      else decision.socket.destroy();
    }
    return true;
  }

  /**
   * A request has come, and keeps its connection until `requestEnds`.
   * @param underWay how many others are
   * @returns the fault with which it is refused, if there is no room for it
   */
  beginRequest(socket: Socket, underWay: number): SidecarError | undefined {
    if (this.#slots.beginRequest(socket) > MAX_PIPELINED) return TOO_MANY_PIPELINED;
    return underWay < this.#options.limits.requests ? undefined : TOO_MANY_REQUESTS;
  }

  /** To be called once for each request that began. */
  endRequest(socket: Socket): void {
    this.#slots.endRequest(socket);
  }

  /**
   * Resolves when those that wait at the port are here: when a turn of the event loop brought no connection, and was so
   * short that hardly one can have come behind its look at the port. The longer it takes, the longer a turn may be.
   */
  async whenBacklogAccepted(longestMs: number): Promise<void> {
    const { clock } = this.#options;
    // From one place in a turn to the same in the next: the port is looked at once in between.
    await waitOneLoopTurn();
    const startedAt = clock.now();
    let [turnAt, isQuiet] = [startedAt, false];
    for (let turn = 0; !isQuiet && turn < MAX_LOOP_TURNS && turnAt - startedAt < longestMs; turn++) {
      const before = this.#acceptedCount;
      await waitOneLoopTurn();
      const now = clock.now();
      isQuiet = this.#acceptedCount === before && now - turnAt < SHORT_LOOP_TURN_MS + (now - startedAt) / 50;
      turnAt = now;
    }
  }

  /** Resolves when none is open. */
  whenEmpty(): Promise<void> {
    if (this.#slots.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#emptyWaiters.push(resolve));
  }

  closeAll(): void {
    for (const socket of [...this.#slots.sockets, ...this.#refused]) socket.destroy();
  }

  /** It stays open until its peer has read the reply, but not at the cost of more descriptors: then the one refused first has to go. */
  #refuse(socket: Socket): void {
    const { refuse, limits } = this.#options;
    if (this.#refused.size >= limits.refusedConnections) {
      const [oldest] = this.#refused;
      oldest?.destroy();
      if (oldest !== undefined) this.#refused.delete(oldest);
    }
    this.#refused.add(socket);
    socket.once('close', () => this.#refused.delete(socket));
    refuse(socket, TOO_MANY_CONNECTIONS);
  }

  #remove(socket: Socket): void {
    this.#slots.remove(socket);
    if (this.#slots.size > 0) return;
    for (const resolve of this.#emptyWaiters.splice(0)) resolve();
  }

  #warn(): void {
    const { limits, clock, observe } = this.#options;
    if (clock.now() < this.#nextWarningAt) return;
    this.#nextWarningAt = clock.now() + WARNING_INTERVAL_MS;
    const message =
      `the limit of ${String(limits.connections)} client connections is reached (listen.maxConnections, or less where descriptors or memory allow less); ` +
      `refused so far: ${String(this.#refusedCount)}, closed while waiting: ${String(this.#displacedCount)}`;
    observe({ kind: 'warning', message });
  }
}

function waitOneLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
