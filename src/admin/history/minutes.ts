/** The last minutes by the wall clock (pure): status codes, latency, rate-limited calls. Bounded. */
import { LATENCY_BUCKET_COUNT, readPercentiles } from './latency-histogram.ts';

/** The counts of one second. */
export interface SecondCounts {
  requests: number;
  /** By the response that was sent to the client. */
  ok: number;
  clientErrors: number;
  serverErrors: number;
  /** Local replies with a status of 400 or above. */
  own: number;
  /** Attempts that got a permit. */
  sent: number;
  /** Calls that the upstream rate limited. */
  refused: number;
  /** Attempts without a response: unreachable, reset, timeout. */
  faults: number;
}

/** One minute; the newest one has not ended. */
export interface Minute {
  /** Epoch milliseconds of its start. */
  readonly wallAt: number;
  readonly requests: number;
  /** Calls that the upstream rate limited. */
  readonly refused: number;
  /** Milliseconds; undefined without a request. */
  readonly p50Ms: number | undefined;
  readonly p95Ms: number | undefined;
  readonly p99Ms: number | undefined;
  /** The longest queue at the end of a second. */
  readonly maxQueued: number;
}

/** How often a status code was sent. */
export interface CodeCount {
  readonly code: number;
  readonly source: 'upstream' | 'sidecar';
  readonly count: number;
}

const MAX_MINUTES = 5;
const MINUTE_MS = 60_000;
/** A status code of the upstream is its own index; one of a local reply has this offset. */
export const LOCAL_CODE_OFFSET = 600;

interface MinuteSlot {
  wallAt: number;
  requests: number;
  refused: number;
  maxQueued: number;
  readonly codes: Uint32Array;
  readonly latency: Uint32Array;
}

export class MinuteHistory {
  /** Newest first. */
  readonly #slots: MinuteSlot[] = [];
  /** The counts of the current minute, incremented by `History`: index `code`, or `code + LOCAL_CODE_OFFSET`. */
  codes = new Uint32Array(2 * LOCAL_CODE_OFFSET);

  /** Adds one second to the minute in which it ends. */
  add(wallAt: number, second: SecondCounts, latency: Uint32Array, queued: number): void {
    const slot = this.#slotAt(Math.floor(wallAt / MINUTE_MS) * MINUTE_MS);
    slot.requests += second.requests;
    slot.refused += second.refused;
    slot.maxQueued = Math.max(slot.maxQueued, queued);
    if (second.requests === 0) return;
    for (let bucket = 0; bucket < LATENCY_BUCKET_COUNT; bucket++)
      slot.latency[bucket] = (slot.latency[bucket] ?? 0) + (latency[bucket] ?? 0);
  }

  /** Newest first, at most five. */
  read(): Minute[] {
    return this.#slots.map(({ wallAt, requests, refused, maxQueued, latency }) => ({
      ...{ wallAt, requests, refused, maxQueued },
      ...readPercentiles(latency),
    }));
  }

  /** The codes of the newest `minutes`. */
  readCodes(minutes = MAX_MINUTES): CodeCount[] {
    const found: CodeCount[] = [];
    for (let index = 0; index < 2 * LOCAL_CODE_OFFSET; index++) {
      let count = this.#slots.length === 0 ? (this.codes[index] ?? 0) : 0;
      for (const slot of this.#slots.slice(0, minutes)) count += slot.codes[index] ?? 0;
      if (count === 0) continue;
      const isLocal = index >= LOCAL_CODE_OFFSET;
      found.push({
        code: isLocal ? index - LOCAL_CODE_OFFSET : index,
        source: isLocal ? 'sidecar' : 'upstream',
        count,
      });
    }
    return found;
  }

  #slotAt(wallAt: number): MinuteSlot {
    const [newest] = this.#slots;
    if (newest?.wallAt === wallAt) return newest;
    // Before the first sample the counts already belong to this minute.
    const codes = newest === undefined ? this.codes : new Uint32Array(2 * LOCAL_CODE_OFFSET);
    this.codes = codes;
    const slot = {
      wallAt,
      requests: 0,
      refused: 0,
      maxQueued: 0,
      codes,
      latency: new Uint32Array(LATENCY_BUCKET_COUNT),
    };
    this.#slots.unshift(slot);
    this.#slots.length = Math.min(this.#slots.length, MAX_MINUTES);
    return slot;
  }
}
