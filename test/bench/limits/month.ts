/**
 * A month of one process with declared limits in virtual time, beside an upstream that counts exactly by a clock of its own: changes of
 * clocks, clean restarts and crashes at random instants, and a daily curve of load that exceeds the limits at times. The state file is
 * real, and each write takes 5 ms.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cancel, Clock, Random, Timer, TimerTarget } from '../../../src/platform/clock.ts';
import type { DeclaredLimit, DeclaredLimitState } from '../../../src/throttle/declared/declared-limit.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import { StateFile } from '../../../src/throttle/state-file.ts';
import type { Permit, Throttle } from '../../../src/throttle/throttle.ts';
import { seeded } from '../../throttle/simulation.ts';
import { SteppingClock } from '../../throttle/stepping-clock.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WRITE_MS = 5;
const UPSTREAM_CLOCK_ERROR_MS = 1200;
const LIMIT_DEFAULTS = { window: 'calendar', countsRefused: true, spread: 'none', reserve: 0 } as const;

export const LIMITS: readonly DeclaredLimit[] = [
  { ...LIMIT_DEFAULTS, name: 'day', calls: 10_000, per: '1d', timeZone: 'Europe/Berlin' },
  { ...LIMIT_DEFAULTS, name: 'month', calls: 200_000, per: '1mo', timeZone: 'America/New_York' },
  { ...LIMIT_DEFAULTS, name: 'hour', calls: 600, per: '1h', timeZone: 'UTC', window: 'sliding' },
];

export interface MonthOptions {
  /** Epoch milliseconds. */
  readonly start: number;
  readonly days: number;
  readonly seed: number;
  /** As many clean restarts, and as many crashes. */
  readonly ends: number;
}

export interface Crash {
  readonly at: number;
  /** By limit: what the next process counts beside what this one did, and beside the upstream. */
  readonly overCounts: readonly number[];
  readonly aboveUpstream: readonly number[];
}

export interface Forecast {
  readonly at: number;
  /** Infinity: not before the end of the day. */
  readonly forecastAt: number;
  readonly usedUpAt: number;
}

export interface MonthResult {
  readonly offered: number;
  readonly sent: number;
  readonly refused: number;
  /** Highest counts of the upstream by limit, of any of its windows. */
  readonly most: readonly number[];
  /** Calls of each whole day of the upstream's day limit. */
  readonly days: ReadonlyMap<string, number>;
  readonly crashes: readonly Crash[];
  /** By how much the count of the process fell when it was restarted cleanly; 0. */
  readonly lost: number;
  readonly forecasts: readonly Forecast[];
  readonly warnings: readonly string[];
}

/** Of a process: its timers end with it. */
class ProcessClock implements Clock {
  isDead = false;
  readonly #clock: MonthClock;

  constructor(clock: MonthClock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  wallNow(): number {
    return this.#clock.wallNow();
  }

  after(delayMs: number, run: () => void): Cancel {
    return this.#clock.after(delayMs, () => {
      if (!this.isDead) run();
    });
  }

  startTimer(delayMs: number, target: TimerTarget): Timer {
    return { cancel: this.after(delayMs, () => target.onTimer()) };
  }

  exactlyAt(at: number, run: () => void): Cancel {
    return this.after(at - this.now(), run);
  }
}

class MonthClock extends SteppingClock {
  readonly #start: number;

  constructor(start: number) {
    super();
    this.#start = start;
  }

  override wallNow(): number {
    return this.#start + this.now();
  }

  async run(byMs: number): Promise<void> {
    const until = this.now() + byMs;
    this.exactlyAt(until, () => undefined);
    await this.runUntilIdle(until);
  }
}

/** Counts each call when it arrives, by its own clock. */
class Upstream {
  refused = 0;
  sent = 0;
  readonly days = new Map<string, number>();
  readonly #months = new Map<string, number>();
  #lastHour: number[] = [];
  #mostOfHour = 0;
  readonly #dayOf = labelOf('Europe/Berlin', { year: 'numeric', month: '2-digit', day: '2-digit' });
  readonly #monthOf = labelOf('America/New_York', { year: 'numeric', month: '2-digit' });

  count(wallAt: number): void {
    const at = wallAt + UPSTREAM_CLOCK_ERROR_MS;
    this.sent++;
    const [day = 0, month = 0, hour = 0] = this.used(wallAt);
    if (LIMITS.some(({ calls }, index) => ([day, month, hour][index] ?? 0) >= calls)) this.refused++;
    this.days.set(this.#dayOf(at), day + 1);
    this.#months.set(this.#monthOf(at), month + 1);
    this.#lastHour.push(at);
    this.#mostOfHour = Math.max(this.#mostOfHour, this.#lastHour.length);
  }

  used(wallAt: number): readonly number[] {
    const at = wallAt + UPSTREAM_CLOCK_ERROR_MS;
    while ((this.#lastHour[0] ?? Infinity) <= at - HOUR_MS) this.#lastHour.shift();
    return [this.days.get(this.#dayOf(at)) ?? 0, this.#months.get(this.#monthOf(at)) ?? 0, this.#lastHour.length];
  }

  get most(): readonly number[] {
    return [Math.max(...this.days.values()), Math.max(...this.#months.values()), this.#mostOfHour];
  }
}

function labelOf(timeZone: string, parts: Intl.DateTimeFormatOptions): (at: number) => string {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone, ...parts });
  return (at) => format.format(at);
}

interface Process {
  readonly clock: ProcessClock;
  readonly file: StateFile;
  readonly throttle: Throttle;
}

export async function playMonth({ start, days, seed, ends }: MonthOptions): Promise<MonthResult> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-limits-'));
  try {
    return await new Month(start, days, seeded(seed), join(folder, 'state.json')).play(ends);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

class Month {
  readonly #clock: MonthClock;
  readonly #durationMs: number;
  readonly #random: Random;
  readonly #path: string;
  readonly #upstream = new Upstream();
  readonly #warnings: string[] = [];
  readonly #hourOf: (at: number) => string;
  #process: Process | undefined;
  #offered = 0;
  /** Of the load, by day. */
  readonly #factors: readonly number[];
  /** When the day's limit was used up by our own count. */
  readonly #usedUp: number[] = [];

  constructor(start: number, days: number, random: Random, path: string) {
    this.#clock = new MonthClock(start);
    this.#durationMs = days * DAY_MS;
    this.#random = random;
    this.#path = path;
    this.#factors = Array.from({ length: days + 1 }, () => 0.5 + 0.9 * random());
    this.#hourOf = labelOf('Europe/Berlin', { hour: '2-digit', hourCycle: 'h23' });
  }

  async play(ends: number): Promise<MonthResult> {
    const moments = Array.from({ length: 2 * ends }, (_, index) => ({
      at: this.#random() * this.#durationMs,
      isCrash: index % 2 === 0,
    })).toSorted((one, other) => one.at - other.at);
    const crashes: Crash[] = [];
    const forecasts: { at: number; forecastAt: number }[] = [];
    let lost = 0;
    await this.#start();
    this.#arrive();
    this.#watch(forecasts);
    for (const { at, isCrash } of moments) {
      await this.#clock.run(Math.max(0, at - this.#clock.now()));
      const before = this.#states();
      if (isCrash) await this.#crash();
      else await this.#stop();
      const stopped = isCrash ? before : this.#states();
      await this.#clock.run(this.#random() * 20_000);
      await this.#start();
      const wallAt = this.#clock.wallNow();
      const after = this.#states();
      const upstream = this.#upstream.used(wallAt);
      const difference = after.map(({ used }, index) => used - (stopped[index]?.used ?? 0));
      const aboveUpstream = after.map(({ used }, index) => used - (upstream[index] ?? 0));
      if (isCrash) crashes.push({ at: wallAt, overCounts: difference, aboveUpstream });
      else if (isSameWindow(stopped[1], after[1])) lost = Math.max(lost, -(difference[1] ?? 0));
    }
    await this.#clock.run(Math.max(0, this.#durationMs - this.#clock.now()));
    await this.#stop();
    return {
      ...{ offered: this.#offered, sent: this.#upstream.sent, refused: this.#upstream.refused },
      ...{ most: this.#upstream.most, days: this.#upstream.days, crashes, lost, warnings: this.#warnings },
      forecasts: forecasts.map((one) => ({
        ...one,
        usedUpAt: this.#usedUp.find((at) => at >= one.at && at - one.at < 14 * HOUR_MS) ?? Infinity,
      })),
    };
  }

  #states(): readonly DeclaredLimitState[] {
    return this.#process?.throttle.state().limits ?? [];
  }

  async #start(): Promise<void> {
    const clock = new ProcessClock(this.#clock);
    const file = new StateFile({
      path: this.#path,
      owners: new Map([['default', { upstream: 'https://api.example.com', client: 'client' }]]),
      clock,
      warn: (message) => this.#warnings.push(message),
      write: (path, text) =>
        new Promise((resolve) => {
          clock.after(WRITE_MS, () => {
            writeFileSync(path, text);
            resolve();
          });
        }),
    });
    const throttle = createThrottle({
      route: 'default',
      throttle: { rate: 1000, burst: 100, maxInFlight: 64, maxStreams: 100, maxPauseMs: 300_000, limits: LIMITS },
      queue: { max: 1000, timeoutMs: 30_000 },
      ...{ clock, random: this.#random, observe: () => undefined, requestPermits: file.requestPermits },
    });
    await file.restore();
    const counting = file.startCounting(new Map([['default', throttle]]));
    await this.#clock.run(2 * WRITE_MS);
    await counting;
    file.startWriting(() => new Map());
    this.#process = { clock, file, throttle };
  }

  async #crash(): Promise<void> {
    if (this.#process !== undefined) this.#process.clock.isDead = true;
    await Promise.resolve();
  }

  async #stop(): Promise<void> {
    this.#process?.throttle.shutDown();
    await this.#clock.run(200);
    const stopping = this.#process?.file.stop();
    await this.#clock.run(4 * WRITE_MS);
    await stopping;
    if (this.#process !== undefined) this.#process.clock.isDead = true;
  }

  #arrive(): void {
    const now = this.#clock.now();
    const hour = Number(this.#hourOf(this.#clock.wallNow()));
    const curve = 100 + 800 * Math.sin((Math.PI * (hour - 3)) / 24) ** 2;
    const perHour = curve * (this.#factors[Math.floor(now / DAY_MS)] ?? 1);
    this.#clock.after((-Math.log(1 - this.#random()) * HOUR_MS) / perHour, () => {
      if (this.#clock.now() > this.#durationMs) return;
      this.#offered++;
      if (this.#process?.clock.isDead === false) void this.#call(this.#process);
      this.#arrive();
    });
  }

  async #call({ throttle, clock }: Process): Promise<void> {
    const ticket = throttle.enter(clock.now() + 60_000, undefined, false);
    try {
      const permit = ticket.tryTakePermit() ?? (await ticket.waitForPermit());
      await this.#send(permit);
    } catch {
      const [day] = throttle.state().limits ?? [];
      const last = this.#usedUp.at(-1) ?? -Infinity;
      if (day !== undefined && day.used >= day.calls && this.#clock.wallNow() - last > 6 * HOUR_MS)
        this.#usedUp.push(this.#clock.wallNow());
    }
    ticket.leave();
  }

  async #send(permit: Permit): Promise<void> {
    permit.markSent();
    await this.#clock.sleep(5 + 35 * this.#random());
    this.#upstream.count(this.#clock.wallNow());
    await this.#clock.sleep(5 + 35 * this.#random());
    permit.report({ kind: 'accepted' });
    permit.release();
  }

  /** Notes the forecast at half of each day. */
  #watch(forecasts: { at: number; forecastAt: number }[]): void {
    this.#clock.after(HOUR_MS, () => {
      const wallAt = this.#clock.wallNow();
      if (Number(this.#hourOf(wallAt)) === 12)
        forecasts.push({ at: wallAt, forecastAt: this.#states()[0]?.usedUpAt ?? Infinity });
      if (this.#clock.now() < this.#durationMs) this.#watch(forecasts);
    });
  }
}

function isSameWindow(one: DeclaredLimitState | undefined, other: DeclaredLimitState | undefined): boolean {
  return one?.resetsAt === other?.resetsAt;
}
