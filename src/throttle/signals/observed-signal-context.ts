/**
 * Learns from several responses what one rate-limit header field does not say (pure): whether a partition key names our own part
 * of a quota, and whether a reset in plain digits counts seconds or milliseconds.
 */
import { MAX_WAIT_MS, readNumber } from '../../platform/rate-limit-fields/header-values.ts';
import { RESET_HEADERS } from '../../platform/rate-limit-fields/plain-quotas.ts';
import type { FieldHints } from './hinted-quotas.ts';
import type { SignalContext } from './rate-limit-signal.ts';

/** A partition that has changed is trusted again after this number of responses with the new key. */
const TRUSTED_AFTER_RESPONSES = 8;
/** The partitions of further policies are not trusted. */
const MAX_POLICIES = 16;

/** One for each upstream; `observe` sees every response with rate-limit header fields. */
export class ObservedSignalContext implements SignalContext {
  readonly #partitions = new Map<string, { partition: string; untrustedResponses: number }>();
  readonly #unit = new ResetUnitDetector();
  /** `throttle.hints`; may be replaced. */
  hints: FieldHints = new Map();

  get resetUnitMs(): number {
    return this.#unit.unitMs;
  }

  /**
   * A key that is the same in every response names our client. Keys that change from response to response name resources, and the
   * remaining calls of one say nothing about the next call.
   */
  readonly isOwnPartition = (policy: string, partition: string): boolean => {
    const known = this.#partitions.get(policy);
    if (known === undefined) {
      if (this.#partitions.size >= MAX_POLICIES) return false;
      this.#partitions.set(policy, { partition, untrustedResponses: 0 });
      return true;
    }
    if (known.partition !== partition) {
      known.partition = partition;
      known.untrustedResponses = TRUSTED_AFTER_RESPONSES;
    } else if (known.untrustedResponses > 0) known.untrustedResponses--;
    return known.untrustedResponses === 0;
  };

  /**
   * Observes the reset of a response, before its signal is read.
   * @param fields values by lower-case name @param madeAt when the origin made the response, monotonic
   */
  observe(fields: ReadonlyMap<string, string>, madeAt: number): void {
    for (const name of RESET_HEADERS) {
      // The unit of a hinted field is configured.
      if (this.hints.has(name)) continue;
      const value = readNumber(fields.get(name));
      if (value === undefined) continue;
      // The size of an epoch shows its unit.
      if (value * 1000 <= MAX_WAIT_MS) this.#unit.addSample(value, madeAt);
      return;
    }
  }
}

/** Two values closer together than this show no unit. */
const MIN_GAP_MS = 250;
/** Between two values further apart, the window may have ended several times. */
const MAX_GAP_MS = 60_000;
/** Consecutive measurements that must show milliseconds. */
const MIN_AGREEING_SAMPLES = 2;

/**
 * Within one window a reset falls by 1000 a second in milliseconds, and by 1 in seconds. Seconds are the default, and one sign of them
 * suffices to return to them: seconds taken for milliseconds would end a pause far too early.
 */
class ResetUnitDetector {
  unitMs = 1000;
  #value = 0;
  #at = -Infinity;
  #agreeingSamples = 0;

  addSample(value: number, now: number): void {
    const apartMs = now - this.#at;
    if (apartMs < MIN_GAP_MS && value <= this.#value) return;
    if (apartMs >= MIN_GAP_MS && apartMs <= MAX_GAP_MS && value <= this.#value)
      this.#evaluate(this.#value - value, apartMs);
    this.#value = value;
    this.#at = now;
  }

  #evaluate(fall: number, apartMs: number): void {
    if (fall > apartMs / 2 && fall < apartMs * 2) {
      this.#agreeingSamples++;
      if (this.#agreeingSamples >= MIN_AGREEING_SAMPLES) this.unitMs = 1;
    } else if (fall <= 2 + apartMs / 500) {
      this.#agreeingSamples = 0;
      this.unitMs = 1000;
    }
  }
}
