/**
 * Whether a rate that was accepted before is tried again (pure): the refusals did not become rare although the rate fell. What was inferred
 * from refusals is so compared with what it brings. A test is bounded in refusals, and each one in vain makes the next one rarer.
 */
import type { CallLog } from './call-log.ts';
import { RefusalCount } from './refusal-count.ts';

/** Accepted calls are counted for so long at a time. */
const SLOT_MS = 10_000;
/** Slots before the first refusal that count, and over which a lasting rate is measured. */
const FIRST_SLOTS = 6;
const LASTING_MS = FIRST_SLOTS * SLOT_MS;
/** What was accepted counts half after this time. */
const HALF_LIFE_MS = 3_600_000;
/** A refusal at a higher part of the former rate can be that of a limit just below it. */
const FALLEN_SHARE = 0.85;
/** Refusals that the limit in use does not explain, from which the refused share is computed. */
const KEPT_STRAYS = 8;
/** While a limit is learned many calls are refused as well. */
const MIN_STRAYS_MS = 30_000;
/** Refused share from which on refusals are not rare, and from which on half of the strays are enough. */
const STRAY_SHARE = 0.003;
const OFTEN_SHARE = 0.08;
/** An upstream that refuses a larger share is taken for closed. */
const MOST_SHARE = 0.7;
/** A process that has just begun knows no former rate: so many refusals among its newest calls are enough. */
const NEW_MS = 90_000;
const RECENT_CALLS = 40;
const MIN_OFTEN = 8;
/** Permits per second that are tried then at least: the rate has hardly left a call for seconds. */
const FIRST_RATE = 2;
/** Where calls are refused often, the former rate was hardly ever seen: a multiple of the rate in use is tried. */
const RAISE_PER_SHARE = 20;
const LEAST_RAISE = 2;
const MOST_RAISE = 10;
const FIRST_DELAY_MS = 45_000;
const LONGEST_DELAY_MS = 3_600_000;
/** After a test in vain a lower rate is tried. */
const LOWER = 0.75;
const MIN_TEST_MS = 20_000;
const MIN_TEST_CALLS = 20;
const EXPECTED_REFUSALS = 6;
/** So few of the expected refusals show that a limit refuses, and not chance: permits were saved up. */
const TOO_FEW_SHARE = 0.3;
/** A test in which less than this part of the share before is accepted is in vain. */
const KEPT_ACCEPTED = 0.75;
/** The share is known from few refusals. */
const UNCERTAINTY = 1.7;
const SPARE_REFUSALS = 3;
const LEAST_SHARE = 0.002;

interface Stray {
  /** Calls and refusals at a fallen rate until then. */
  readonly calls: number;
  readonly refused: number;
  /** In use when it was refused. */
  readonly rate: number;
  readonly at: number;
}

export class FormerRate {
  #rate = 0;
  #slotStartedAt = 0;
  #slotCalls = 0;
  #lastingRate = 0;
  #lastingStartedAt = 0;
  #lastingCalls = 0;
  #calls = 0;
  #refused = 0;
  #strays: readonly Stray[] = [];
  #recent = new RefusalCount();
  #isNewUntil = -Infinity;
  #dueAt = -Infinity;
  #delayMs = FIRST_DELAY_MS;
  #refutedDelayMs = 0;
  #startedAt = 0;
  #test = new RefusalCount();
  #expectedShare = 0;

  /** Calls per second that were accepted before the rate fell, or that a test tries instead. */
  get rate(): number {
    return this.#rate;
  }

  /** Calls per second that were accepted for a minute before the rate fell. */
  get lastingRate(): number {
    return this.#lastingRate;
  }

  /** @param rate calls per second that were accepted before this began */
  adopt(rate: number): void {
    this.#rate = Math.max(this.#rate, rate);
    this.#lastingRate = Math.max(this.#lastingRate, rate);
  }

  /** The first refusal. @param calls those before it */
  begin(now: number, calls: CallLog): void {
    for (let slot = 1; slot <= FIRST_SLOTS; slot++) {
      const count = calls.count(now - slot * SLOT_MS, now - (slot - 1) * SLOT_MS);
      this.#rate = Math.max(this.#rate, (count * 1000) / SLOT_MS);
    }
    this.#lastingRate = Math.max(this.#lastingRate, (calls.count(now - LASTING_MS, now) * 1000) / LASTING_MS);
    this.#slotStartedAt = this.#lastingStartedAt = now;
    this.#dueAt = now + FIRST_DELAY_MS;
    this.#isNewUntil = now + NEW_MS;
  }

  /** @param rate permits per second in use */
  recordAccepted(now: number, rate: number): void {
    this.#recordRecent(true);
    if (rate <= FALLEN_SHARE * this.#rate) this.#calls++;
    this.#slotCalls++;
    this.#lastingCalls++;
    const lastingMs = now - this.#lastingStartedAt;
    if (lastingMs >= LASTING_MS) {
      this.#lastingRate = raise(this.#lastingRate, this.#lastingCalls, lastingMs);
      this.#lastingStartedAt = now;
      this.#lastingCalls = 0;
    }
    const ms = now - this.#slotStartedAt;
    if (ms < SLOT_MS) return;
    this.#rate = raise(this.#rate, this.#slotCalls, ms);
    this.#slotStartedAt = now;
    this.#slotCalls = 0;
  }

  /**
   * @param rate permits per second in use
   * @param isStray the limit in use does not explain the refusal
   */
  recordRefused(now: number, rate: number, isStray: boolean): void {
    this.#recordRecent(false);
    if (rate > FALLEN_SHARE * this.#rate) return;
    this.#calls++;
    this.#refused++;
    if (!isStray) return;
    const stray = { calls: this.#calls, refused: this.#refused, rate, at: now };
    this.#strays = [...this.#strays, stray].slice(-KEPT_STRAYS);
  }

  /** Soon after the first refusal. */
  isFirstDue(now: number): boolean {
    return now >= this.#dueAt && now < this.#isNewUntil && this.#isRefusedOften;
  }

  /** @param rate permits per second in use */
  isDue(now: number, rate: number): boolean {
    if (now < this.#dueAt || this.#rate === 0) return false;
    const share = this.#strayShare;
    if (now - (this.#strays[0]?.at ?? now) < MIN_STRAYS_MS) return false;
    if (share < STRAY_SHARE || this.#strays.length < KEPT_STRAYS / 2) return false;
    if (share >= OFTEN_SHARE) return true;
    // A limit that refused this share of the former rate would refuse nothing now.
    const most = FALLEN_SHARE * (1 - share) * this.#rate;
    const atLowRate = this.#strays.filter((stray) => stray.rate < most);
    return rate < most && this.#strays.length === KEPT_STRAYS && atLowRate.length > KEPT_STRAYS / 2;
  }

  /** @param rate permits per second in use */
  startTest(now: number, rate: number): void {
    const isFirst = this.isFirstDue(now);
    const share = isFirst ? Math.max(this.#strayShare, this.#recent.mostShare) : this.#strayShare;
    const raise = Math.min(MOST_RAISE, Math.max(LEAST_RAISE, RAISE_PER_SHARE * share));
    if (share >= OFTEN_SHARE) this.#rate = Math.max(this.#rate, raise * rate, isFirst ? FIRST_RATE : 0);
    this.#startedAt = now;
    this.#test = new RefusalCount();
    this.#expectedShare = Math.max(LEAST_SHARE, share);
    this.#dueAt = now + this.#delayMs;
    this.#delayMs = Math.min(LONGEST_DELAY_MS, 2 * this.#delayMs);
    this.#strays = [];
    this.#recent = new RefusalCount();
  }

  /**
   * @param rate permits per second that were in use before the test
   * @returns the refused share when the former rate is accepted; `in vain`; undefined while the test goes on
   */
  recordTestCall(now: number, isAccepted: boolean, rate: number): number | 'in vain' | undefined {
    this.#test.record(isAccepted);
    const { calls, refused, share: seen, isClustered } = this.#test;
    const share = this.#expectedShare;
    const expected = UNCERTAINTY * share * calls;
    const most = calls * (1 - KEPT_ACCEPTED * (1 - share));
    const isTooMany = refused > SPARE_REFUSALS + Math.min(most, expected + Math.sqrt(expected));
    if (isTooMany || (refused > SPARE_REFUSALS && isClustered)) {
      this.#rate = Math.max(rate, LOWER * this.#rate);
      return 'in vain';
    }
    const isEnough = calls >= MIN_TEST_CALLS && expected >= EXPECTED_REFUSALS;
    if (now - this.#startedAt < MIN_TEST_MS || !isEnough) return undefined;
    this.#delayMs = Math.max(FIRST_DELAY_MS, this.#refutedDelayMs);
    return seen < share * TOO_FEW_SHARE || seen > MOST_SHARE ? 'in vain' : (share + seen) / 2;
  }

  /** The rate that a test found to be accepted was a limit's in the end. */
  recordRefuted(now: number): void {
    this.#delayMs = Math.min(LONGEST_DELAY_MS, 2 * Math.max(this.#refutedDelayMs, this.#delayMs));
    this.#refutedDelayMs = this.#delayMs;
    this.#dueAt = now + this.#delayMs;
    this.#rate *= LOWER;
  }

  #recordRecent(isAccepted: boolean): void {
    if (this.#recent.calls >= RECENT_CALLS) this.#recent = new RefusalCount();
    this.#recent.record(isAccepted);
  }

  /** Refusals are frequent and do not come together; a limit refuses calls in groups while a lower rate is learned. */
  get #isRefusedOften(): boolean {
    const { refused, share, isClustered } = this.#recent;
    return refused >= MIN_OFTEN && share >= OFTEN_SHARE && share <= MOST_SHARE && !isClustered;
  }

  get #strayShare(): number {
    const [first] = this.#strays;
    if (first === undefined || this.#strays.length < 2) return 0;
    return (this.#refused - first.refused) / (this.#calls - first.calls);
  }
}

/** The rate of these calls, or what is left of a higher one from before. */
function raise(rate: number, calls: number, ms: number): number {
  return Math.max(rate * 0.5 ** (ms / HALF_LIFE_MS), (calls * 1000) / ms);
}
