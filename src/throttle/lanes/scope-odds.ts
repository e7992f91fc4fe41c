/**
 * How much more likely a limit of one operation alone explains its refusals than one for all operations, in bits (pure). With a limit for all,
 * the first refused call of a closure is drawn from all calls; else it comes from the operation more often than its share of them, which is
 * estimated on the way (Krichevsky and Trofimov 1981), so that refusals of others count against it.
 */

/** From these odds on, the limit is taken for the operation's own without further tests. */
const CONFIRMED_BITS = 6;
/** From these odds down it is taken for one for all. */
const REFUTED_BITS = -4;
/** What all witnesses together can show, and one accepted one. */
const MAX_WITNESS_BITS = 6;
const MAX_BITS_OF_WITNESS = 3;
const REFUSED_WITNESS_BITS = -3;
/** What closures can show at most: limits change, so that later ones must be able to refute it. */
const MAX_SHARE_BITS = 12;
/** Less than confirms: the limit may have become another one. */
const RESTORED_BITS = 3;
/** Each inquest costs, so that what stays undecided becomes the route's. */
const INQUEST_BITS = -0.3;
const MIN_SHARE = 0.01;

export class ScopeOdds {
  /** Closures that began with this operation. */
  closures = 0;
  #others = 0;
  #shareBits = 0;
  #expected = 0;
  #witnessBits = 0;
  #wasConfirmed = false;

  get bits(): number {
    const isOftener = this.closures > this.#expected;
    return this.#witnessBits + (isOftener ? this.#shareBits : Math.min(0, this.#shareBits));
  }

  /** Once confirmed it stays: limits for all make closures as well, and a lane too many is raised by its own probes until it holds up nothing. */
  get isConfirmed(): boolean {
    return (this.#wasConfirmed ||= this.isLikely);
  }

  /** As confirmed, and not contradicted by what came later. */
  get isLikely(): boolean {
    return this.bits >= CONFIRMED_BITS;
  }

  get isRefuted(): boolean {
    return this.bits <= REFUTED_BITS;
  }

  /** An earlier process had confirmed it. */
  restore(): void {
    this.#witnessBits = RESTORED_BITS;
  }

  /** Something else than a limit of the operation explains its refusals. */
  refute(): void {
    this.#wasConfirmed = false;
    this.#witnessBits = -MAX_WITNESS_BITS;
    this.#shareBits = Math.min(0, this.#shareBits);
  }

  /** A time of refusals begins. @param share of the operation among the calls before it */
  recordClosure(isOwn: boolean, share: number): void {
    const bounded = Math.min(1 - MIN_SHARE, Math.max(MIN_SHARE, share));
    const [count, probability] = isOwn ? [this.closures, bounded] : [this.#others, 1 - bounded];
    const bits = Math.log2((count + 0.5) / (this.closures + this.#others + 1) / probability);
    this.#shareBits = Math.min(MAX_SHARE_BITS, this.#shareBits + bits);
    this.#expected += bounded;
    if (isOwn) this.closures++;
    else this.#others++;
  }

  /**
   * A call of another operation was accepted after a refused one.
   * @param chance with a limit for all, that a permit came between the two calls
   */
  recordAcceptedWitness(chance: number): void {
    const bits = chance > 0 ? Math.min(MAX_BITS_OF_WITNESS, -Math.log2(Math.min(1, chance))) : MAX_BITS_OF_WITNESS;
    this.#addWitness(bits + INQUEST_BITS);
  }

  /** Another operation was refused too. */
  recordRefusedWitness(): void {
    this.#addWitness(REFUSED_WITNESS_BITS);
  }

  #addWitness(bits: number): void {
    this.#witnessBits = Math.max(-MAX_WITNESS_BITS, Math.min(MAX_WITNESS_BITS, this.#witnessBits + bits));
  }
}
