/** The limits of the simulated API. They share no code with the throttle: a common fault would not show. */
import type { OutgoingHttpHeaders } from 'node:http';

/** One limit: `calls` in `per`; or `rate`, of which `burst` are saved up; or `inFlight`. */
export interface SandboxLimit {
  readonly calls?: number | undefined;
  /** A whole number and `s`, `m`, `h` or `d`, or `1mo`. */
  readonly per?: string | undefined;
  /** `fixed` begins with a call, `calendar` at a multiple of its length in UTC. Default: `sliding`. */
  readonly window?: 'sliding' | 'fixed' | 'calendar' | undefined;
  /** Calls per second. */
  readonly rate?: number | undefined;
  /** Default: 1. */
  readonly burst?: number | undefined;
  readonly inFlight?: number | undefined;
  /** The calls that it counts: with one of the methods, with this path or one below it. Default: all. */
  readonly match: { readonly methods?: readonly string[] | undefined; readonly path?: string | undefined };
  /** Of a refusal. Default: 429. */
  readonly status?: number | undefined;
  /** Of a refusal. Default: `seconds`. */
  readonly retryAfter?: 'seconds' | 'date' | 'none' | undefined;
  /** On all responses. Default: `none`. */
  readonly fields?: 'none' | 'ratelimit' | 'x-ratelimit' | undefined;
}

/** What a call gets. */
export interface LimitVerdict {
  /** Undefined: it is let in. */
  readonly status: number | undefined;
  /** Hints for the client. */
  readonly headers: OutgoingHttpHeaders;
  /** Its response has ended. */
  readonly release: () => void;
}

export type Limiter = (at: number, method: string, path: string) => LimitVerdict;

/** A call is let in by all limits that count it, or by none; the first one that has no place refuses it. Instants are epoch milliseconds. */
export function createLimiter(limits: readonly SandboxLimit[]): Limiter {
  const counts = limits.map((limit) => new LimitCount(limit));
  return (at, method, path) => {
    const matching = counts.filter(({ limit }) => isCounted(limit, method, path));
    const full = matching.find((count) => count.freeAt(at) > at);
    const taken = full === undefined ? matching.map((count) => count.take(at)) : [];
    return {
      status: full === undefined ? undefined : (full.limit.status ?? 429),
      headers: Object.assign(
        {},
        ...matching.map((count) => count.describe(at)),
        full?.describe(at),
        full?.describeWait(at),
      ),
      release: () => {
        for (const release of taken) release();
      },
    };
  };
}

function isCounted({ match: { methods, path = '/' } }: SandboxLimit, method: string, called: string): boolean {
  return (methods?.includes(method) ?? true) && (path === '/' || `${called}/`.startsWith(`${path}/`));
}

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MONTH = '1mo';

/** Every kind of limit has places, and a call keeps one until an instant; only these instants differ. */
class LimitCount {
  readonly limit: SandboxLimit;
  readonly #places: number;
  readonly #lengthMs: number;
  /** When the places that are taken get free, in ascending order. */
  #ends: number[] = [];

  constructor(limit: SandboxLimit) {
    const { calls, per = MONTH, rate = 1, burst = 1, inFlight } = limit;
    this.limit = limit;
    this.#places = calls ?? inFlight ?? burst;
    const unitMs = UNIT_MS[per.at(-1) as keyof typeof UNIT_MS];
    this.#lengthMs =
      calls === undefined ? (burst * 1000) / rate : per === MONTH ? 30 * UNIT_MS.d : parseInt(per) * unitMs;
  }

  /** When there is a place; a past instant: now. */
  freeAt(at: number): number {
    const taken = this.#ends.findIndex((end) => end > at);
    this.#ends.splice(0, taken < 0 ? this.#ends.length : taken);
    return this.#ends[this.#ends.length - this.#places] ?? at;
  }

  /** @returns gives the place back when the response has ended */
  take(at: number): () => void {
    this.#ends.push(this.#findEnd(at));
    return () => {
      if (this.limit.inFlight !== undefined) this.#ends.pop();
    };
  }

  describe(at: number): OutgoingHttpHeaders {
    const remaining = Math.max(0, this.#places - this.#ends.length);
    const reset = toSeconds((this.#ends.at(-1) ?? at) - at);
    const [limit, rest, wait] = [this.#places, remaining, reset].map(String);
    const window = toSeconds(this.#lengthMs).toString();
    switch (this.limit.fields) {
      case 'ratelimit':
        return { 'ratelimit-policy': `"calls";q=${limit};w=${window}`, ratelimit: `"calls";r=${rest};t=${wait}` };
      case 'x-ratelimit':
        return { 'x-ratelimit-limit': limit, 'x-ratelimit-remaining': rest, 'x-ratelimit-reset': wait };
      default:
        return {};
    }
  }

  /** Seconds are rounded up, so that a client that waits that long is not refused again. */
  describeWait(at: number): OutgoingHttpHeaders {
    const freeAt = this.freeAt(at);
    const waitS = Number.isFinite(freeAt) ? Math.max(1, toSeconds(freeAt - at)) : 1;
    const date = new Date(Math.ceil(at / 1000 + waitS) * 1000);
    const { retryAfter = 'seconds' } = this.limit;
    return retryAfter === 'none'
      ? {}
      : { 'retry-after': retryAfter === 'date' ? date.toUTCString() : waitS.toString() };
  }

  #findEnd(at: number): number {
    const { calls, per, window, inFlight } = this.limit;
    if (inFlight !== undefined) return Infinity;
    // A bucket gives a permit back at a time.
    if (calls === undefined) return Math.max(at, this.#ends.at(-1) ?? 0) + this.#lengthMs / this.#places;
    if (window === 'fixed') return this.#ends[0] ?? at + this.#lengthMs;
    if (window !== 'calendar') return at + this.#lengthMs;
    const date = new Date(at);
    return per === MONTH
      ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
      : (Math.floor(at / this.#lengthMs) + 1) * this.#lengthMs;
  }
}

/** Rounded up; a float that is a little too large is not. */
function toSeconds(ms: number): number {
  return Math.ceil(ms / 1000 - 1e-6);
}
