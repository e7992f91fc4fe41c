/**
 * What no single answer tells about the fields that state a limit, and several do (pure, time is a parameter): whether the share
 * of a quota that a partition key names is ours, and whether a plain reset counts seconds or milliseconds.
 */
import { MAX_WAIT_MS, readNumber, type ReadHeader } from './header-values.ts';
import { RESET_HEADERS } from './plain-quotas.ts';
import type { SignalContext } from './rate-limit-signal.ts';

/** A partition that has changed is believed again after so many answers that name the same one. */
const TRUSTED_AFTER_RESPONSES = 8;
/** More policies than this are nobody's. */
const MAX_POLICIES = 16;

/** One upstream's; to be shown every answer in which the fields are. */
export class ObservedSignalContext implements SignalContext {
  readonly #partitions = new Map<string, { partition: string; doubts: number }>();
  readonly #unit = new ResetUnitDetector();

  get resetUnitMs(): number {
    return this.#unit.unitMs;
  }

  /**
   * A partition is ours while every answer names the same: the key then stands for us. Where keys change from answer to answer
   * they stand for resources, and what is left of one says nothing of the next call.
   */
  readonly isOwnPartition = (policy: string, partition: string): boolean => {
    const known = this.#partitions.get(policy);
    if (known === undefined) {
      if (this.#partitions.size >= MAX_POLICIES) return false;
      this.#partitions.set(policy, { partition, doubts: 0 });
      return true;
    }
    if (known.partition !== partition) {
      known.partition = partition;
      known.doubts = TRUSTED_AFTER_RESPONSES;
    } else if (known.doubts > 0) known.doubts--;
    return known.doubts === 0;
  };

  /** Looks at an answer's reset before the answer is read. */
  observe(field: ReadHeader, now: number): void {
    for (const name of RESET_HEADERS) {
      const value = readNumber(field(name));
      if (value === undefined) continue;
      // An epoch has its unit on its face.
      if (value * 1000 <= MAX_WAIT_MS) this.#unit.learn(value, now);
      return;
    }
  }
}

/** Two values nearer to each other than this say nothing. */
const MIN_GAP_MS = 250;
/** Of two that are further apart nobody knows what happened between them. */
const MAX_GAP_MS = 60_000;
/** So many measurements in a row must show milliseconds. */
const MIN_AGREEING = 2;

/**
 * A reset of the same window falls by 1000 a second in milliseconds and by 1 in seconds. Seconds are the rule and taken back at the first
 * sign of them: taken for milliseconds they would end a pause far too early.
 */
class ResetUnitDetector {
  unitMs = 1000;
  #value = 0;
  #at = -Infinity;
  #agreeing = 0;

  learn(value: number, now: number): void {
    const apartMs = now - this.#at;
    if (apartMs < MIN_GAP_MS && value <= this.#value) return;
    if (apartMs >= MIN_GAP_MS && apartMs <= MAX_GAP_MS && value <= this.#value)
      this.#evaluate(this.#value - value, apartMs);
    this.#value = value;
    this.#at = now;
  }

  #evaluate(fall: number, apartMs: number): void {
    if (fall > apartMs / 2 && fall < apartMs * 2) {
      this.#agreeing++;
      if (this.#agreeing >= MIN_AGREEING) this.unitMs = 1;
    } else if (fall <= 2 + apartMs / 500) {
      this.#agreeing = 0;
      this.unitMs = 1000;
    }
  }
}
