/**
 * The pace while the upstream refuses a share of the calls at any rate (pure). Such a refusal holds up no other call. The rate rises until more
 * is refused than this share, and then follows what is accepted, so that a limit on top of it is used and hardly exceeded. From time to time
 * the rate is eased: if the refusals become rarer by it, they were a limit's.
 */
import { RefusalCount } from './refusal-count.ts';

/** A slot has at least this length and so many calls. */
const SLOT_MS = 5_000;
const SLOT_CALLS = 20;
/** Fewer accepted calls than this part of the expected ones, and than chance makes them differ, are a limit's doing. */
const TOLERATED_SHARE = 0.5;
const LEAST_TOLERATED = 0.02;
const MOST_TOLERATED = 0.07;
const DEVIATIONS = 2;
/** One slot of few accepted calls shows no lower limit. */
const KEPT_SLOTS = 4;
/** Beyond the accepted rate. */
const SPARE = 1.01;
const RISE = 1.5;
/** Until a rise was in vain: the slots are shorter, and the rate doubles. */
const FIRST_SLOT_MS = 2_000;
const FIRST_SLOT_CALLS = 10;
const FIRST_RISE = 2;
const FIRST_DEVIATIONS = 3;
/** After a rise in vain the time to the next one is multiplied by this. */
const RARER = 2;
const MOST_SLOTS_TO_RISE = 64;
/** Chance alone makes so long a run of refusals once in so many calls. */
const CALLS_PER_RUN = 100_000;
/** The rate falls by this factor with each such run. */
const CLOSED_FACTOR = 0.5;
/** After so many in a row something is closed for long. */
const MOST_RUNS = 5;
const EASED_SHARE = 0.85;
const AFTER_EASING = 1.1;
const LONGEST_EASING_MS = 600_000;
const FIRST_EASE_DELAY_MS = 30_000;
const LONGEST_EASE_DELAY_MS = 3_600_000;
/** Refusals that are expected in the calls after which the share is measured again. */
const EXPECTED_REFUSALS = 10;
/** With fewer than this part of them, their cause has ended. */
const ENDED_SHARE = 0.15;
/** At the eased rate: they depend on the rate. */
const RARER_SHARE = 0.3;
const MEASURED_WEIGHT = 1 / 4;
const EASED_WEIGHT = 1 / 2;
/** Smaller shares cost little as evidence of a limit, and would be eased for too long. */
const LEAST_SHARE = 0.002;
const LEAST_EASED_SHARE = 0.015;
const MOST_SHARE = 0.7;

/** `over`: nothing is refused any more. `rate`: the refusals depend on the rate. */
export type EndOfChance = 'over' | 'rate';

export class RefusalsByChance {
  #share: number;
  #rate: number;
  #isEased = false;
  /** The eased slot before showed a limit. */
  #isDoubted = false;
  #easeAt: number;
  #easedAt: number;
  #easeDelayMs = FIRST_EASE_DELAY_MS;
  #run = 0;
  #slotStartedAt: number;
  #slot = new RefusalCount();
  #isWaitedFor = false;
  #acceptedRates: readonly number[] = [];
  #slotsToRise = 1;
  #slotsSinceRise = 0;
  #hasRisen = false;
  #isStart = true;
  #measuredCalls = 0;
  #measuredRefused = 0;

  /** @param rate permits per second, of which all but `share` were accepted */
  constructor(now: number, share: number, rate: number) {
    this.#share = Math.min(MOST_SHARE, share);
    this.#rate = rate;
    this.#easedAt = this.#slotStartedAt = now;
    this.#easeAt = now + FIRST_EASE_DELAY_MS;
  }

  /** Part of the calls that is refused at any rate. */
  get share(): number {
    return this.#share;
  }

  /** Permits per second. */
  get rate(): number {
    return (this.#isEased ? EASED_SHARE * this.acceptedRate : this.#rate) * CLOSED_FACTOR ** Math.floor(this.#runs);
  }

  /** Calls per second that were accepted lately. */
  get acceptedRate(): number {
    return this.#acceptedRates.length === 0 ? this.#rate * (1 - this.#share) : Math.max(...this.#acceptedRates);
  }

  /** So many calls in a row were refused that chance does not explain it: all calls should wait. */
  get isClosed(): boolean {
    return this.#runs >= 1;
  }

  get #runs(): number {
    return (this.#run * Math.log(this.#share)) / -Math.log(CALLS_PER_RUN);
  }

  /** @param isWaitedFor the application uses the whole rate */
  record(now: number, isAccepted: boolean, isWaitedFor: boolean): EndOfChance | undefined {
    this.#run = isAccepted ? 0 : this.#run + 1;
    this.#slot.record(isAccepted);
    if (isWaitedFor) this.#isWaitedFor = true;
    if (this.#runs >= MOST_RUNS) return 'rate';
    if (this.#isEased) return this.#endEasing(now);
    const [leastMs, leastCalls] = this.#isStart ? [FIRST_SLOT_MS, FIRST_SLOT_CALLS] : [SLOT_MS, SLOT_CALLS];
    if (now - this.#slotStartedAt < leastMs || this.#slot.calls < leastCalls) return undefined;
    return this.#endSlot(now);
  }

  #endSlot(now: number): EndOfChance | undefined {
    const { calls, refused } = this.#slot;
    const accepted = calls - refused;
    const expected = (1 - this.#share) * calls;
    const deviations = this.#isStart ? FIRST_DEVIATIONS : DEVIATIONS;
    const tolerated = Math.min(MOST_TOLERATED, Math.max(LEAST_TOLERATED, TOLERATED_SHARE * this.#share));
    const isRefusedMore =
      accepted < (1 - tolerated) * expected && accepted < expected - deviations * Math.sqrt(this.#share * expected);
    this.#acceptedRates = [...this.#acceptedRates, (accepted * 1000) / (now - this.#slotStartedAt)].slice(-KEPT_SLOTS);
    this.#adjustRate(isRefusedMore);
    const end = isRefusedMore ? undefined : this.#measure(calls, refused);
    this.#startSlot(now);
    const easedMs = (EXPECTED_REFUSALS * 1000) / (this.#share * EASED_SHARE * this.acceptedRate);
    if (now >= this.#easeAt && this.#share >= LEAST_EASED_SHARE && easedMs <= LONGEST_EASING_MS) {
      this.#isEased = true;
      this.#easeDelayMs = Math.min(LONGEST_EASE_DELAY_MS, RARER * this.#easeDelayMs);
      this.#easeAt = now + this.#easeDelayMs;
    }
    return end;
  }

  #adjustRate(isRefusedMore: boolean): void {
    if (isRefusedMore) {
      this.#isStart = false;
      const most = (SPARE * this.acceptedRate) / (1 - this.#share);
      // No more than what is accepted is sent, and yet more is refused: the share should be measured.
      if (this.#rate <= most) this.#easeAt = Math.min(this.#easeAt, this.#easedAt + FIRST_EASE_DELAY_MS);
      else if (most > 0) this.#rate = most;
      if (this.#hasRisen) this.#slotsToRise = Math.min(MOST_SLOTS_TO_RISE, RARER * this.#slotsToRise);
      this.#slotsSinceRise = 0;
      this.#hasRisen = false;
      return;
    }
    if (this.#hasRisen) this.#slotsToRise = 1;
    this.#slotsSinceRise++;
    this.#hasRisen = this.#isWaitedFor && this.#slotsSinceRise >= this.#slotsToRise;
    if (!this.#hasRisen) return;
    this.#rate *= this.#isStart ? FIRST_RISE : RISE;
    this.#slotsSinceRise = 0;
  }

  #measure(calls: number, refused: number): EndOfChance | undefined {
    this.#measuredCalls += calls;
    this.#measuredRefused += refused;
    if (this.#measuredCalls * this.#share < EXPECTED_REFUSALS) return undefined;
    const seen = this.#measuredRefused / this.#measuredCalls;
    const deviation = Math.sqrt((this.#share * (1 - this.#share)) / this.#measuredCalls);
    this.#measuredCalls = this.#measuredRefused = 0;
    if (seen < ENDED_SHARE * this.#share) return 'over';
    // A limit may have refused as well: only the eased rate shows that the share has risen.
    if (seen < this.#share - DEVIATIONS * deviation) this.#share += (seen - this.#share) * MEASURED_WEIGHT;
    return this.#share < LEAST_SHARE ? 'over' : undefined;
  }

  #endEasing(now: number): EndOfChance | undefined {
    if (this.#slot.calls * this.#share < EXPECTED_REFUSALS) return undefined;
    const { share: seen, isClustered } = this.#slot;
    this.#startSlot(now);
    if (isClustered || seen < RARER_SHARE * this.#share) {
      if (this.#isDoubted) return 'rate';
      // Chance alone does that in one of a hundred slots: the rate stays eased for a second one.
      this.#isDoubted = true;
      return undefined;
    }
    this.#isEased = this.#isDoubted = false;
    this.#easedAt = now;
    // Requests have gathered meanwhile, and would come all at once.
    this.#rate = Math.min(this.#rate, (AFTER_EASING * this.acceptedRate) / (1 - this.#share));
    this.#share = Math.min(MOST_SHARE, this.#share + (seen - this.#share) * EASED_WEIGHT);
    return undefined;
  }

  #startSlot(now: number): void {
    this.#slotStartedAt = now;
    this.#slot = new RefusalCount();
    this.#isWaitedFor = false;
  }
}
