/**
 * A histogram of durations that forgets (pure). Two generations: when the younger one has lasted long enough, it takes the place of the older.
 * Durations that were cut off count as longer than they lasted (Kaplan and Meier 1958): calls that were given up for being slow must not make
 * the others look quick.
 */

/** Bounds double every four buckets, from 1 ms to 4 minutes; the last bucket has the rest. */
const PER_DOUBLING = 4;
const BUCKETS = 18 * PER_DOUBLING + 1;
/** A generation ends after the longer time, or after the shorter one if it has enough durations. */
const MIN_GENERATION_MS = 15_000;
const MAX_GENERATION_MS = 300_000;
const ENOUGH = 100;

class Generation {
  readonly whole = new Uint32Array(BUCKETS);
  readonly cut = new Uint32Array(BUCKETS);
  readonly startedAt: number;
  count = 0;

  constructor(startedAt: number) {
    this.startedAt = startedAt;
  }
}

export class AgedTimes {
  #current: Generation | undefined;
  #former: Generation | undefined;

  /** @param isWhole false for a duration that was cut off at `ms` */
  add(now: number, ms: number, isWhole: boolean): void {
    if (this.#current !== undefined && now - this.#current.startedAt >= MIN_GENERATION_MS) this.#age(now);
    const bucket = ms <= 1 ? 0 : Math.min(BUCKETS - 1, Math.ceil(PER_DOUBLING * Math.log2(ms)));
    const generation = (this.#current ??= new Generation(now));
    const counts = isWhole ? generation.whole : generation.cut;
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    generation.count++;
  }

  /** Durations of late, both kinds. */
  count(now: number): number {
    this.#age(now);
    return (this.#current?.count ?? 0) + (this.#former?.count ?? 0);
  }

  /** Milliseconds that the given part of the durations does not exceed, at most 19 % too high; Infinity where too many were cut off. */
  quantileMs(now: number, part: number): number {
    let atRisk = this.count(now);
    let longer = 1;
    for (let bucket = 0; bucket < BUCKETS - 1 && atRisk > 0; bucket++) {
      const ended = this.#sum('whole', bucket);
      longer *= 1 - ended / atRisk;
      if (longer <= 1 - part) return 2 ** (bucket / PER_DOUBLING);
      atRisk -= ended + this.#sum('cut', bucket);
    }
    return Infinity;
  }

  #sum(kind: 'whole' | 'cut', bucket: number): number {
    return (this.#current?.[kind][bucket] ?? 0) + (this.#former?.[kind][bucket] ?? 0);
  }

  #age(now: number): void {
    const current = this.#current;
    if (current !== undefined && isOver(now - current.startedAt, current.count)) {
      this.#former = current;
      this.#current = undefined;
    }
    if (this.#former !== undefined && isForgotten(now - this.#former.startedAt)) this.#former = undefined;
  }
}

/** A clock that jumps back keeps no generation for ever. */
function isOver(ageMs: number, count: number): boolean {
  return ageMs < 0 || ageMs >= MAX_GENERATION_MS || (ageMs >= MIN_GENERATION_MS && count >= ENOUGH);
}

function isForgotten(ageMs: number): boolean {
  return ageMs < 0 || ageMs >= 2 * MAX_GENERATION_MS;
}
