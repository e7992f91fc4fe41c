/** What happened in each of the last minutes by the wall clock (pure): codes as sent, latency, refusals. Bounded, made once. */
import { LATENCY_BUCKET_COUNT, readQuantile } from './latency-histogram.ts';

/** What ended within one second. */
export interface SecondCounts {
  requests: number;
  /** By what was sent to the client. */
  ok: number;
  clientErrors: number;
  serverErrors: number;
  /** Refused or failed by the sidecar itself. */
  own: number;
  /** Attempts that got their permit. */
  sent: number;
  /** Calls that the upstream refused for their rate. */
  refused: number;
  /** Attempts without an answer: unreachable, reset, too late. */
  faults: number;
}

/** One minute, the present one included. */
export interface Minute {
  /** Epoch milliseconds of its beginning. */
  readonly wallAt: number;
  readonly requests: number;
  /** Calls that the upstream refused for their rate. */
  readonly refused: number;
  /** Milliseconds; undefined without a request. */
  readonly medianMs: number | undefined;
  readonly p95Ms: number | undefined;
  /** The most that waited at the end of one of its seconds. */
  readonly maxQueued: number;
}

/** How often a status was sent. */
export interface CodeCount {
  readonly code: number;
  readonly source: 'upstream' | 'sidecar';
  readonly count: number;
}

const MAX_MINUTES = 5;
const MINUTE_MS = 60_000;
/** Codes of the upstream stand at their own number, those of the sidecar this much further. */
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
  /** Counted into at once: `code`, or `code + OWN_CODES`. */
  codes = new Uint32Array(2 * LOCAL_CODE_OFFSET);

  /** Adds one second; what is told of belongs to the minute in which it ends. */
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
      medianMs: readQuantile(latency, 0.5),
      p95Ms: readQuantile(latency, 0.95),
    }));
  }

  /** Of the newest `minutes`, by code. */
  readCodes(minutes = MAX_MINUTES): CodeCount[] {
    const found: CodeCount[] = [];
    for (let index = 0; index < 2 * LOCAL_CODE_OFFSET; index++) {
      let count = this.#slots.length === 0 ? (this.codes[index] ?? 0) : 0;
      for (const slot of this.#slots.slice(0, minutes)) count += slot.codes[index] ?? 0;
      if (count === 0) continue;
      const isOwn = index >= LOCAL_CODE_OFFSET;
      found.push({ code: isOwn ? index - LOCAL_CODE_OFFSET : index, source: isOwn ? 'sidecar' : 'upstream', count });
    }
    return found;
  }

  #slotAt(wallAt: number): MinuteSlot {
    const [newest] = this.#slots;
    if (newest?.wallAt === wallAt) return newest;
    // What was counted since belongs to the new minute; of the old one a reader keeps no more than its array.
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
