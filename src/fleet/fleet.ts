/**
 * The door to what replicas share over Redis or Valkey: scripts, each answered within a fixed time or not at all. Whoever asks must
 * be able to go on alone: "not at all" is an ordinary answer here. Keys and scripts are those of the boards built on it;
 * keeping a connection is standing-link's.
 */
import type { Cancel, Clock, Random } from '../platform/clock.ts';
import type { Observe } from '../telemetry/events.ts';
import { Condition } from './condition.ts';
import type { FleetState } from './condition.ts';
import { nameFault, RedisFault } from './fault.ts';
import type { Link } from './link.ts';
import { evaluate } from './script.ts';
import type { Arguments, Reply, Script } from './script.ts';
import { StandingLink } from './standing-link.ts';

export interface FleetOptions {
  /** Opens one connection within a bounded time, or rejects with a RedisFault. */
  readonly open: () => Promise<Link>;
  /** Longest wait for the reply to one script, milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
}

export interface Fleet {
  /** Begins to connect, in the background. */
  start(): void;
  /**
   * Runs a script on one key. Resolves within the time-out, and at once while there is no connection or the server owes an
   * answer; undefined then, and the server may still run the script later. Never rejects.
   */
  run(script: Script, key: string, args: Arguments): Promise<Reply | undefined>;
  /** As `run`, for work that is rare and worth a wait: its answer may be late by a quarter of a second. */
  runPatiently(script: Script, key: string, args: Arguments): Promise<Reply | undefined>;
  /**
   * Whether running makes sense: at once, or after a wait where that is likely to change it, for the end of the first
   * attempt to connect or for a late answer. For the same kind of work.
   */
  whenReady(): Promise<boolean>;
  state(): FleetState;
  /** Lets go: waits for the scripts under way, each within the time-out, then ends the connection. */
  close(): Promise<void>;
}

/** How long a late answer is waited for by work that may wait. */
const LATE_ANSWER_MS = 250;
/** A server that owes an answer for so long is given up; a new connection shows whether it is back. */
const LONGEST_STALL_MS = 1000;
/** Keeps an idle connection from being cut on its way, and shows a server that hangs before it is needed. */
const HEARTBEAT_MS = 30_000;
/** Error replies after which a new connection may reach a server that is better off. */
const REPLIES_TO_LEAVE: ReadonlySet<string> = new Set(['READONLY', 'MASTERDOWN', 'LOADING']);

/** A fleet that has not begun to connect. */
export function createFleet(options: FleetOptions): Fleet {
  return new RedisFleet(options);
}

interface Stall {
  readonly link: Link;
  readonly cancel: Cancel;
}

class RedisFleet implements Fleet {
  readonly #options: FleetOptions;
  readonly #standing: StandingLink;
  readonly #condition: Condition;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #waiting = new Set<() => void>();
  /** The first attempt to connect is under way. */
  #isJoining = false;
  #stall: Stall | undefined;
  #cancelBeat: Cancel | undefined;
  #isClosed = false;

  constructor(options: FleetOptions) {
    const { open, clock, random, observe } = options;
    this.#options = options;
    this.#condition = new Condition(clock, observe);
    this.#standing = new StandingLink({
      open,
      clock,
      random,
      onUp: () => {
        this.#isJoining = false;
        this.#condition.noteUp();
        this.#beat();
        this.#wake();
      },
      onDown: (fault) => {
        this.#isJoining = false;
        this.#endStall();
        this.#cancelBeat?.();
        this.#condition.noteDown(fault);
        this.#wake();
      },
    });
  }

  start(): void {
    if (this.#isClosed) return;
    this.#isJoining = true;
    this.#standing.start();
  }

  run(script: Script, key: string, args: Arguments): Promise<Reply | undefined> {
    return this.#run(script, key, args, this.#options.timeoutMs);
  }

  runPatiently(script: Script, key: string, args: Arguments): Promise<Reply | undefined> {
    return this.#run(script, key, args, this.#options.timeoutMs + LATE_ANSWER_MS);
  }

  async whenReady(): Promise<boolean> {
    if (this.#isClosed || (!this.#isJoining && this.#stall === undefined)) return this.#usable() !== undefined;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        cancel?.();
        this.#waiting.delete(wake);
        resolve();
      };
      // The first attempt to connect ends by itself.
      const cancel = this.#isJoining ? undefined : this.#options.clock.after(LATE_ANSWER_MS, wake);
      this.#waiting.add(wake);
    });
    return this.#usable() !== undefined;
  }

  state(): FleetState {
    return this.#condition.state();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake();
    await Promise.all(this.#underWay);
    this.#endStall();
    this.#cancelBeat?.();
    this.#standing.close();
  }

  #usable(): Link | undefined {
    return this.#stall === undefined && !this.#isClosed ? this.#standing.link : undefined;
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  async #run(script: Script, key: string, args: Arguments, limitMs: number): Promise<Reply | undefined> {
    const link = this.#usable();
    if (link === undefined) return undefined;
    const answer = evaluate(link, script, key, args);
    this.#watch(link, answer, (fault) => this.#noteAnswer(link, fault));
    const work = this.#withinTime(answer, limitMs);
    this.#underWay.add(work);
    const reply = await work;
    this.#underWay.delete(work);
    return reply;
  }

  /** Settles once: with the reply, or without one when it is late or an error. */
  #withinTime(answer: Promise<Reply>, limitMs: number): Promise<Reply | undefined> {
    const { clock, observe } = this.#options;
    return new Promise((resolve) => {
      let isSettled = false;
      const settle = (outcome: 'ok' | 'timeout' | 'error', reply?: Reply): void => {
        if (isSettled) return;
        isSettled = true;
        cancel();
        observe({ kind: 'fleet-command', outcome });
        resolve(reply);
      };
      const cancel = after(clock, limitMs, () => settle('timeout'));
      answer.then(
        (reply) => settle('ok', reply),
        () => settle('error'),
      );
    });
  }

  /** Sees to it that nobody else waits for a server that owes an answer, and that one for too long is left. */
  #watch(link: Link, answer: Promise<unknown>, note: (fault?: RedisFault) => void): void {
    const cancel = after(this.#options.clock, this.#options.timeoutMs, () => this.#noteStall(link));
    const end = (fault?: RedisFault): void => {
      cancel();
      // Of an end of the connection the connection itself tells.
      if (this.#standing.link !== link || (fault !== undefined && fault.reply === undefined)) return;
      if (this.#stall?.link === link) this.#endStall();
      note(fault);
      this.#wake();
    };
    answer.then(
      () => end(),
      (error: unknown) => end(nameFault(error)),
    );
  }

  #beat(): void {
    this.#cancelBeat = this.#options.clock.after(HEARTBEAT_MS, () => {
      const link = this.#usable();
      if (link !== undefined) this.#watch(link, link.send(['PING']), () => undefined);
      this.#beat();
    });
  }

  #noteStall(link: Link): void {
    if (this.#stall !== undefined || this.#standing.link !== link) return;
    const { clock, timeoutMs } = this.#options;
    const cancel = clock.after(Math.max(0, LONGEST_STALL_MS - timeoutMs), () => {
      this.#standing.drop(link, new RedisFault(`did not answer for ${LONGEST_STALL_MS} ms`));
    });
    this.#stall = { link, cancel };
  }

  #endStall(): void {
    this.#stall?.cancel();
    this.#stall = undefined;
  }

  /** A script was answered, however late. */
  #noteAnswer(link: Link, fault: RedisFault | undefined): void {
    this.#condition.noteAnswer(fault);
    if (fault?.reply !== undefined && REPLIES_TO_LEAVE.has(fault.reply)) this.#standing.drop(link, fault);
  }
}

/** As the clock's, yet what has arrived while this process itself was busy is read first. */
function after(clock: Clock, delayMs: number, run: () => void): Cancel {
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
