/**
 * Evidence for a rate limit at one window length (pure). Calls are divided into blocks, each opened by the first call after the one before.
 * In the blocks with refusals three explanations compete: the accepted calls are a fixed number (a limit), a fixed share of the calls (a
 * dead node, random faults), or those before a fixed instant (an outage by the clock). The one that varies least is the best.
 */
/** Blocks that are kept; the oldest goes first. */
const MAX_BLOCKS = 24;
const MIN_BLOCKS = 6;
/** Two numbers from different blocks agree when they differ by no more. */
const AGREEMENT = 0.1;
/** Smaller numbers vary too coarsely; they are found in a longer window. */
const MIN_ACCEPTED = 8;
/** Accepted calls precede refused ones in this part of all pairs: refusals are at the end of the block, and are no share of all calls. */
const ORDERED = 0.9;
/** How many times more the best other explanation must vary. */
const REQUIRED_RATIO = 4;
/** With twice the blocks. */
const REQUIRED_RATIO_OF_MANY = 2.5;
/** Of the blocks in which as many calls were accepted as in those with refusals, the part that has refusals must be at least this ... */
const MIN_REFUSING_SHARE_AT_LIMIT = 0.75;
/** ... and of the blocks with fewer, at most this. */
const MAX_REFUSING_SHARE_BELOW = 0.25;
/** Fewer accepted calls than this part of the limit are below it. */
const BELOW = 0.8;
/** Part of the refusals that may be in blocks without an accepted call: an outage has most of them there. */
const MAX_SHARE_WITHOUT_ACCEPTED = 0.1;
/** Faults per refusal beside which a refusal is taken for a sign of trouble. */
const MAX_FAULTS_PER_REFUSAL = 0.02;
/** Slower refusals than accepted calls, or slower accepted calls than in calm, are signs of overload. */
const MAX_SLOWDOWN = 4;
/** So many standard deviations from what chance gives, refusals do not fall on the calls of a window by chance. */
const MIN_DEVIATIONS = 4;
/** Of the blocks with the application's even number of calls, the part that has refusals is lower where no limit is reached. */
const MIN_REFUSING_SHARE_AT_RATE = 0.5;
/** Smaller differences say nothing. */
const SLOWDOWN_RESOLUTION_MS = 20;
/** Instants are no more exact than the network. */
const INSTANT_RESOLUTION_MS = 5;

const CLASSES = 160;
const PER_DOUBLING = 8;
/** Fewer blocks give no share. */
const MIN_BLOCKS_OF_SHARE = 5;

interface Block {
  readonly accepted: number;
  readonly refused: number;
  /** Calls without their retries. */
  readonly offered: number;
  readonly faults: number;
  /** Part of the pairs of an accepted and a refused call in which the accepted one was sent first. */
  readonly order: number;
  /** Refused calls that follow a refused one. */
  readonly refusedAfterRefused: number;
  /** From the first call to the last accepted one. */
  readonly acceptedForMs: number;
  readonly acceptedLatencyMs: number;
  /** Of the first accepted call, and of the last one before the first refusal. */
  readonly firstLatencyMs: number;
  readonly lastLatencyMs: number;
  readonly refusedLatencyMs: number;
}

/** The figures behind a proposal. */
export interface WindowFigures {
  /** Infinity: from one recovery to the next. */
  readonly windowMs: number;
  /** Windows with refusals that agree. */
  readonly windows: number;
  /** Accepted calls in a window with refusals, the median. */
  readonly acceptedPerWindow: number;
  /** Of the windows with about as many accepted calls or more, the part that had refusals. */
  readonly shareAtHighRate: number;
  /** Of the windows with fewer, the part that had refusals; undefined where there were none. */
  readonly shareAtLowRate: number | undefined;
}

/** Counts blocks by their number of accepted calls, with and without refusals. Bounded: eight classes for each doubling. */
class SizeHistogram {
  readonly #blocks = new Float64Array(CLASSES);
  readonly #refusing = new Float64Array(CLASSES);

  add(accepted: number, isRefusing: boolean): void {
    const index = classOf(accepted);
    this.#blocks[index] = (this.#blocks[index] ?? 0) + 1;
    if (isRefusing) this.#refusing[index] = (this.#refusing[index] ?? 0) + 1;
  }

  /** The part of the blocks with `from` to `to` accepted calls that had refusals; undefined where there are fewer than five. */
  refusingShare(from: number, to: number): number | undefined {
    let [blocks, refusing] = [0, 0];
    const last = to === Infinity ? CLASSES - 1 : classOf(to) - 1;
    for (let index = classOf(from); index <= last; index++) {
      blocks += this.#blocks[index] ?? 0;
      refusing += this.#refusing[index] ?? 0;
    }
    return blocks < MIN_BLOCKS_OF_SHARE ? undefined : refusing / blocks;
  }
}

/** 0 for none. */
function classOf(accepted: number): number {
  return accepted < 1 ? 0 : Math.min(CLASSES - 1, 1 + Math.floor(PER_DOUBLING * Math.log2(accepted)));
}

export class WindowEvidence {
  readonly windowMs: number;
  readonly #blocks: Block[] = [];
  /** All blocks, by their accepted calls. */
  readonly #sizes = new SizeHistogram();
  /** Without those that refuse after one that refuses: calls of that one may still count in the limit. */
  readonly #separateSizes = new SizeHistogram();
  #isAfterRefusing = false;
  #startedAt = -Infinity;
  #accepted = 0;
  #refused = 0;
  #offered = 0;
  #faults = 0;
  #orderedPairs = 0;
  #lastAcceptedAt = 0;
  #refusedAfterRefused = 0;
  #isAfterRefused = false;
  #acceptedLatencyMs = 0;
  #firstLatencyMs = 0;
  #lastLatencyMs = 0;
  #refusedLatencyMs = 0;
  #refusedWithoutAccepted = 0;
  #refusedBesideAccepted = 0;
  /** The number that earlier blocks showed, which later ones must confirm. */
  #candidate: number | undefined;
  #windows = 0;

  constructor(windowMs: number) {
    this.windowMs = windowMs;
  }

  /** @returns true when a block with refusals has ended: `evaluate` may say something new */
  advance(sentAt: number): boolean {
    return sentAt >= this.#startedAt + this.windowMs && this.startBlock(sentAt);
  }

  /** Ends the block. @returns true when it had refusals */
  startBlock(sentAt: number): boolean {
    const hasRefusals = this.#refused > 0;
    this.#endBlock();
    this.#startedAt = sentAt;
    return hasRefusals;
  }

  addAccepted(sentAt: number, latencyMs: number, isRetry: boolean): void {
    if (!isRetry) this.#offered++;
    if (this.#accepted++ === 0) this.#firstLatencyMs = latencyMs;
    if (this.#refused === 0) this.#lastLatencyMs = latencyMs;
    this.#isAfterRefused = false;
    this.#lastAcceptedAt = sentAt;
    this.#acceptedLatencyMs += latencyMs;
  }

  addRefused(latencyMs: number, isRetry: boolean): void {
    if (!isRetry) this.#offered++;
    this.#refused++;
    if (this.#isAfterRefused) this.#refusedAfterRefused++;
    this.#isAfterRefused = true;
    this.#orderedPairs += this.#accepted;
    this.#refusedLatencyMs += latencyMs;
  }

  addFault(): void {
    this.#faults++;
  }

  /**
   * The figures when a fixed number of accepted calls is the best explanation; otherwise undefined.
   * @param calmLatencyMs of accepted calls before the first refusal
   */
  evaluate(calmLatencyMs: number): WindowFigures | undefined {
    const blocks = this.#blocks;
    if (blocks.length < MIN_BLOCKS || this.#isOutageLike() || isTroubled(blocks) || isSlow(blocks, calmLatencyMs))
      return undefined;
    const limit = median(blocks.map(({ accepted }) => accepted));
    if (limit < MIN_ACCEPTED) return undefined;
    const shareAtHighRate = this.#sizes.refusingShare(0.95 * limit, Infinity);
    const shareAtLowRate = this.windowMs === Infinity ? undefined : this.#separateSizes.refusingShare(1, BELOW * limit);
    if (this.windowMs === Infinity && isOftenBelow(blocks, limit)) return undefined;
    if (shareAtHighRate === undefined || shareAtHighRate < MIN_REFUSING_SHARE_AT_LIMIT) return undefined;
    if (shareAtLowRate !== undefined && shareAtLowRate > MAX_REFUSING_SHARE_BELOW) return undefined;
    if (!isNumberBest(blocks, limit, this.windowMs === Infinity)) return undefined;
    const isConfirmed = this.#candidate !== undefined && Math.abs(limit / this.#candidate - 1) <= AGREEMENT;
    this.#windows = isConfirmed ? this.#windows + blocks.length : blocks.length;
    this.#candidate = limit;
    // A chance agreement does not come twice.
    blocks.length = 0;
    const { windowMs } = this;
    return isConfirmed
      ? { windowMs, windows: this.#windows, acceptedPerWindow: limit, shareAtHighRate, shareAtLowRate }
      : undefined;
  }

  /**
   * Whether the same rate is accepted evenly in these blocks, and in most of them without refusals: then it is the application's rate, which
   * repeats what fails.
   */
  refutes(acceptedPerMs: number): boolean {
    const blocks = this.#blocks;
    if (blocks.length < MIN_BLOCKS) return false;
    const accepted = median(blocks.map((block) => block.accepted));
    if (Math.abs(accepted / (acceptedPerMs * this.windowMs) - 1) > AGREEMENT) return false;
    if (narrowestHalf(blocks.map((block) => Math.log(block.accepted))) > AGREEMENT) return false;
    return (this.#sizes.refusingShare(0.95 * accepted, Infinity) ?? 1) < MIN_REFUSING_SHARE_AT_RATE;
  }

  #endBlock(): void {
    if (this.#startedAt === -Infinity) return;
    const [accepted, refused] = [this.#accepted, this.#refused];
    this.#sizes.add(accepted, refused > 0);
    if (refused === 0 || !this.#isAfterRefusing) this.#separateSizes.add(accepted, refused > 0);
    this.#isAfterRefusing = refused > 0;
    if (refused > 0 && accepted === 0) this.#refusedWithoutAccepted += refused;
    if (refused > 0 && accepted > 0) {
      this.#refusedBesideAccepted += refused;
      this.#blocks.push({
        ...{ accepted, refused },
        offered: this.#offered,
        faults: this.#faults,
        order: this.#orderedPairs / (accepted * refused),
        refusedAfterRefused: this.#refusedAfterRefused,
        acceptedForMs: this.#lastAcceptedAt - this.#startedAt,
        acceptedLatencyMs: this.#acceptedLatencyMs / accepted,
        firstLatencyMs: this.#firstLatencyMs,
        lastLatencyMs: this.#lastLatencyMs,
        refusedLatencyMs: this.#refusedLatencyMs / refused,
      });
      if (this.#blocks.length > MAX_BLOCKS) {
        this.#blocks.shift();
        this.#candidate = undefined;
      }
    }
    this.#accepted = this.#refused = this.#offered = this.#faults = this.#orderedPairs = 0;
    this.#acceptedLatencyMs = this.#refusedLatencyMs = this.#firstLatencyMs = this.#lastLatencyMs = 0;
    this.#refusedAfterRefused = 0;
    this.#isAfterRefused = false;
  }

  #isOutageLike(): boolean {
    const without = this.#refusedWithoutAccepted;
    return without > MAX_SHARE_WITHOUT_ACCEPTED * (without + this.#refusedBesideAccepted);
  }
}

/** A cycle always has refusals: those that began with fewer accepted calls speak against the limit. */
function isOftenBelow(blocks: readonly Block[], limit: number): boolean {
  const below = blocks.filter(({ accepted }) => accepted < BELOW * limit).length;
  return below > MAX_REFUSING_SHARE_BELOW * blocks.length;
}

/** @param isCycle a cycle ends with refusals, for any cause: their order refutes no share */
function isNumberBest(blocks: readonly Block[], limit: number, isCycle: boolean): boolean {
  const required = blocks.length < 2 * MIN_BLOCKS ? REQUIRED_RATIO : REQUIRED_RATIO_OF_MANY;
  // A number of calls is known to within one.
  const resolution = 1 / limit;
  const ofNumber = narrowestHalf(blocks.map(({ accepted }) => Math.log(accepted))) + resolution;
  const isOrdered = mean(blocks.map(({ order }) => order)) >= ORDERED;
  if (!isOrdered && !isCycle && isByChance(blocks)) return false;
  const ofShare = isOrdered && !isCycle ? Infinity : varyShares(blocks) + resolution;
  const ofInstant = isOrdered ? varyInstants(blocks.map(({ acceptedForMs }) => acceptedForMs)) : Infinity;
  return Math.min(ofShare, ofInstant) >= required * ofNumber;
}

/**
 * Whether refusals fall on the calls of each block by chance (a runs test). An application that repeats failed calls at once gets the same
 * number accepted in spite of random faults, so that the number alone says nothing.
 */
function isByChance(blocks: readonly Block[]): boolean {
  let [deviation, variance] = [0, 0];
  for (const { accepted, refused, refusedAfterRefused } of blocks) {
    const calls = accepted + refused;
    deviation += refusedAfterRefused - (refused * (refused - 1)) / calls;
    variance += (accepted * refused) ** 2 / calls ** 3;
  }
  return deviation ** 2 < MIN_DEVIATIONS ** 2 * variance;
}

function isTroubled(blocks: readonly Block[]): boolean {
  let [faults, refused] = [0, 0];
  for (const block of blocks) {
    faults += block.faults;
    refused += block.refused;
  }
  return faults > MAX_FAULTS_PER_REFUSAL * refused;
}

function isSlow(blocks: readonly Block[], calmLatencyMs: number): boolean {
  const accepted = median(blocks.map(({ acceptedLatencyMs }) => acceptedLatencyMs));
  const refused = median(blocks.map(({ refusedLatencyMs }) => refusedLatencyMs));
  const isSlower = (one: number, other: number) => one > MAX_SLOWDOWN * other + SLOWDOWN_RESOLUTION_MS;
  const first = median(blocks.map(({ firstLatencyMs }) => firstLatencyMs));
  const last = median(blocks.map(({ lastLatencyMs }) => lastLatencyMs));
  return isSlower(refused, accepted) || isSlower(accepted, calmLatencyMs) || isSlower(last, first);
}

/** Of all calls, or without retries: these raise the number of calls where that of the accepted ones stays the same. */
function varyShares(blocks: readonly Block[]): number {
  const ofAll = narrowestHalf(blocks.map(({ accepted, refused }) => Math.log(accepted / (accepted + refused))));
  const ofOffered = narrowestHalf(blocks.map(({ accepted, offered }) => Math.log(accepted / Math.max(1, offered))));
  return Math.min(ofAll, ofOffered);
}

function varyInstants(sinceStartMs: readonly number[]): number {
  const durations = sinceStartMs.map((ms) => ms + INSTANT_RESOLUTION_MS);
  return narrowestHalf(durations.map(Math.log)) + INSTANT_RESOLUTION_MS / median(durations);
}

/** The range of the half of the values that lie closest together: robust against blocks that only touch a window. */
function narrowestHalf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = Math.ceil(sorted.length / 2);
  let narrowest = Infinity;
  for (let first = 0; first + half < sorted.length; first++)
    narrowest = Math.min(narrowest, (sorted[first + half] ?? 0) - (sorted[first] ?? 0));
  return narrowest;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
