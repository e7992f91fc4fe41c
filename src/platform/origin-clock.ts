/**
 * When the origin made a response, by its clock and by ours (pure). A statement about limits speaks of that instant: `Date` shows it by the
 * origin's clock (RFC 9110 §6.6.1), and `Age` says how long ago it was, when a cache held the response (RFC 9111 §5.1).
 */
import { parseHttpDate } from './http-date.ts';

/** Epoch milliseconds. Without a usable `Date` both clocks are ours; without a usable `Age` the response was made just now. */
export interface MadeAt {
  readonly originAt: number;
  readonly ownAt: number;
  readonly ageMs: number;
  /** How far the clock of the origin is ahead of ours, as far as its `Date` shows; undefined without one. */
  readonly skewMs?: number | undefined;
}

/** A greater difference of the clocks is taken for a wrong `Date`: a day, and what delays add. */
const MAX_SKEW_MS = 25 * 3_600_000;
/** Within this time of ours, a `Date` agrees with our clock: it has whole seconds, and the response took time. */
export const AGREEMENT_MS = 2000;

/** @param dateField `Date` @param ageField `Age` @param now epoch milliseconds by our clock, at which the response came */
export function readMadeAt(dateField: string | undefined, ageField: string | undefined, now: number): MadeAt {
  const ageMs = readAgeMs(ageField);
  const ownAt = now - ageMs;
  const dateAt = parseHttpDate(dateField, now);
  // A gateway such as nginx writes its own Date beside the Age of a cache behind it: then our clock agrees although the response is old.
  const isOfGateway = dateAt !== undefined && ageMs > AGREEMENT_MS && Math.abs(dateAt - now) <= AGREEMENT_MS;
  const originAt = isOfGateway ? dateAt - ageMs : (dateAt ?? ownAt);
  return { originAt, ownAt, ageMs, skewMs: dateAt === undefined ? undefined : originAt - ownAt };
}

/**
 * Milliseconds from the making of a response to an instant that it states, negative for an earlier one. The `Date` decides, and its
 * fraction of a second is taken for 0, so that the result is never too short. Where it is more than a day off, or says that the instant
 * had passed already, the instant may be by another clock: then the reading that is nearer to the making counts.
 */
export function msFromMaking(instantAt: number, { originAt, ownAt }: MadeAt): number {
  const byOrigin = instantAt - originAt;
  const byOurs = instantAt - ownAt;
  if (byOrigin >= 0 && Math.abs(originAt - ownAt) <= MAX_SKEW_MS) return byOrigin;
  return Math.abs(byOurs) < Math.abs(byOrigin) ? byOurs : byOrigin;
}

/** What is left now of a wait that began when the response was made; undefined when none was stated or it is over. */
export function leftOf(waitMs: number | undefined, { ageMs }: MadeAt): number | undefined {
  return waitMs === undefined || waitMs < ageMs ? undefined : waitMs - ageMs;
}

/** The first member of a list counts, other text is ignored (RFC 9111 §5.1), and 2³¹ s is the longest time (§1.2.2). */
function readAgeMs(text = ''): number {
  const [, seconds = 0] = /^\s*(\d+)\s*(?:,|$)/.exec(text) ?? [];
  return Math.min(Number(seconds), 2 ** 31) * 1000;
}
