/** The limits of the simulated API. They share no code with the throttle: a common fault would not show. Instants are epoch milliseconds. */
import type { OutgoingHttpHeaders } from 'node:http';

/** `calls` in `per`, or at once for `inFlight`; docs/local-development.md says what is assumed of what is left out. */
export interface SandboxLimit {
  readonly calls: number;
  readonly per?: string | undefined;
  readonly window?: 'sliding' | 'fixed' | 'calendar' | 'bucket' | 'inFlight' | undefined;
  readonly match?: { readonly methods?: readonly string[] | undefined; readonly path?: string | undefined };
  readonly status?: number | undefined;
  readonly retryAfter?: 'seconds' | 'date' | 'none' | undefined;
  readonly fields?: boolean | undefined;
}

/**
 * A call is let in by all limits that count it, or by none: the first one that has no place refuses it. The response of a call that was let
 * in is released at its end.
 */
export function createLimiter(limits: readonly SandboxLimit[]) {
  const counts = limits.map((limit) => new LimitCount(limit));
  return (at: number, method: string, path: string) => {
    const matching = counts.filter(({ limit: { match } }) => {
      const { methods = [method], path: prefix = '/' } = match ?? {};
      return methods.includes(method) && (prefix === '/' || `${path}/`.startsWith(`${prefix}/`));
    });
    const full = matching.find((count) => count.freeAt(at) > at);
    const taken = full === undefined ? matching : [];
    for (const count of taken) count.take(at);
    const stated = matching.flatMap((count) => Object.entries(count.describe(at, false)));
    return {
      refusal: full && (full.limit.status ?? 429),
      headers: full?.describe(at, true) ?? Object.fromEntries(stated),
      release: () => {
        for (const count of taken) count.release();
      },
    };
  };
}

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MONTH = '1mo';

/** Every kind of limit has places, and a call keeps one until an instant; only these instants differ. */
class LimitCount {
  readonly limit: SandboxLimit;
  readonly #lengthMs: number;
  /** When the places that are taken get free, in ascending order. */
  readonly #ends: number[] = [];

  constructor(limit: SandboxLimit) {
    const { per = MONTH } = limit;
    this.limit = limit;
    this.#lengthMs = per === MONTH ? 30 * UNIT_MS.d : parseInt(per) * UNIT_MS[per.at(-1) as keyof typeof UNIT_MS];
  }

  /** When there is a place; a past instant: now. */
  freeAt(at: number): number {
    while ((this.#ends[0] ?? Infinity) <= at) this.#ends.shift();
    return this.#ends[this.#ends.length - this.limit.calls] ?? at;
  }

  take(at: number): void {
    this.#ends.push(this.#findEnd(at));
  }

  release(): void {
    if (this.limit.window === 'inFlight') this.#ends.pop();
  }

  /** What is left; of a refusal the wait too, rounded up: a client that waits that long is not refused again. */
  describe(at: number, isRefusal: boolean): OutgoingHttpHeaders {
    const { calls, fields = false, retryAfter = 'seconds' } = this.limit;
    const left = Math.max(0, calls - this.#ends.length);
    const reset = toSeconds((this.#ends.at(-1) ?? at) - at);
    const policy = { 'ratelimit-policy': `"calls";q=${String(calls)};w=${String(toSeconds(this.#lengthMs))}` };
    const stated = fields ? { ...policy, ratelimit: `"calls";r=${String(left)};t=${String(reset)}` } : {};
    if (!isRefusal || retryAfter === 'none') return stated;
    const waitMs = this.freeAt(at) - at;
    const wait = waitMs === Infinity ? 1 : Math.max(1, toSeconds(waitMs));
    const date = new Date(Math.ceil(at / 1000 + wait) * 1000);
    return { ...stated, 'retry-after': retryAfter === 'date' ? date.toUTCString() : String(wait) };
  }

  #findEnd(at: number): number {
    const { calls, per, window } = this.limit;
    switch (window) {
      case 'fixed':
        return this.#ends[0] ?? at + this.#lengthMs;
      case 'calendar':
        if (per !== MONTH) return (Math.floor(at / this.#lengthMs) + 1) * this.#lengthMs;
        return Date.UTC(new Date(at).getUTCFullYear(), new Date(at).getUTCMonth() + 1);
      case 'bucket':
        // One call after another gets free.
        return Math.max(at, this.#ends.at(-1) ?? 0) + this.#lengthMs / calls;
      case 'inFlight':
        return Infinity;
      default:
        return at + this.#lengthMs;
    }
  }
}

/** Rounded up; a float that is a little too large is not. */
function toSeconds(ms: number): number {
  return Math.ceil(ms / 1000 - 1e-6);
}
