/**
 * Reads quotas and waits from header fields whose meaning is configured (`throttle.hints`) or known of a vendor (vendor-fields.ts)
 * (pure). A value in another form than its field's is ignored.
 */
import type { MadeAt } from '../../platform/origin-clock.ts';
import {
  MAX_WAIT_MS,
  positiveOrUndefined,
  readNumber,
  readWaitMs,
  secondsToMs,
  waitMsOfMilliseconds,
  type ReadHeader,
} from '../../platform/rate-limit-fields/header-values.ts';
import type { StatedQuota } from '../../platform/rate-limit-fields/stated-quota.ts';
import { parseFieldName, QUOTA_MEMBERS, VENDOR_QUOTAS, type HintMeaning } from './vendor-fields.ts';

/** The meanings that `throttle.hints` knows. */
export const HINT_MEANINGS = Object.keys(QUOTA_MEMBERS) as readonly HintMeaning[];

/** Meanings by the lower-case names of header fields, in the configured order. */
export type FieldHints = ReadonlyMap<string, HintMeaning>;

/** The hints of a configuration, whose names may be in any case. */
export function createFieldHints(configured: Readonly<Record<string, string>>): FieldHints {
  const hints = new Map<string, HintMeaning>();
  for (const [name, meaning] of Object.entries(configured)) {
    const known = HINT_MEANINGS.find((one) => one === meaning);
    if (known !== undefined) hints.set(name.toLowerCase(), known);
  }
  return hints;
}

const LONGEST_SPREAD_MS = 3_600_000;

/** What such fields state. */
export interface HintedLimits {
  readonly quotas: readonly StatedQuota[];
  /** Milliseconds from the making of the response. */
  readonly waitMs: number | undefined;
}

/** The one quota and the wait that the configured fields state; of several fields with one meaning the first that is understood. */
export function readConfiguredHints(readHeader: ReadHeader, hints: FieldHints, made: MadeAt): HintedLimits {
  const { waitMs, ...quota } = readMeanings(readHeader, [...hints], made);
  return { quotas: [{ ...quota, field: findField([...hints], 'remaining') }], waitMs };
}

/** The quotas of each vendor, in the order of the table, and the first wait. */
export function readVendorLimits(readHeader: ReadHeader, made: MadeAt): HintedLimits {
  const quotas: StatedQuota[] = [];
  let waitMs: number | undefined;
  for (const { fields, windowMs, usage, windows } of VENDOR_QUOTAS) {
    const hints = Object.entries(fields);
    const { waitMs: statedMs, ...quota } = readMeanings(readHeader, hints, made);
    waitMs ??= statedMs;
    const field = findField(hints, quota.remaining === undefined ? 'limit' : 'remaining');
    if (quota.quota !== undefined || quota.remaining !== undefined) quotas.push({ windowMs, ...quota, field });
    if (usage !== undefined) quotas.push(...readUsageQuota(usage, readHeader(usage)));
    if (windows !== undefined)
      quotas.push(...readWindows(windows.counts, readHeader(windows.limits), readHeader(windows.counts)));
  }
  return { quotas, waitMs };
}

type Hint = readonly [name: string, meaning: HintMeaning];

function readMeanings(readHeader: ReadHeader, hints: readonly Hint[], made: MadeAt) {
  const values: Partial<Record<(typeof QUOTA_MEMBERS)[HintMeaning], number | undefined>> = {};
  for (const [name, meaning] of hints) values[QUOTA_MEMBERS[meaning]] ??= readMeaning(meaning, readHeader(name), made);
  return values;
}

function findField(hints: readonly Hint[], wanted: HintMeaning): string | undefined {
  return hints.find(([, meaning]) => meaning === wanted)?.[0];
}

function readMeaning(meaning: HintMeaning, text: string | undefined, made: MadeAt): number | undefined {
  if (text === undefined) return undefined;
  const number = readNumber(text);
  switch (meaning) {
    case 'remaining':
      return number;
    case 'limit':
      return positiveOrUndefined(number);
    case 'resetAt':
      // A number that is no epoch is no instant.
      return isDuration(number) ? undefined : readWaitMs(text, made);
    case 'resetIn':
    case 'retryAfter':
      return readDurationMs(text) ?? readWaitMs(text, made);
    case 'resetInMs':
    case 'retryAfterMs':
      return waitMsOfMilliseconds(number, made);
    case 'window':
      return positiveOrUndefined(secondsToMs(number));
    case 'windowMs':
      return number !== undefined && number <= MAX_WAIT_MS ? positiveOrUndefined(number) : undefined;
  }
}

function isDuration(seconds: number | undefined): seconds is number {
  return seconds !== undefined && seconds * 1000 <= MAX_WAIT_MS;
}

/**
 * The quotas and the longest wait of fields whose names say what they state.
 * @param fields values by lower-case name; those with another meaning are left out
 */
export function readNamedLimits(fields: Iterable<readonly [string, string]>, made: MadeAt): HintedLimits {
  const families = new Map<string, StatedQuota>();
  let waitMs: number | undefined;
  for (const [name, text] of fields) {
    const field = parseFieldName(name);
    if (field === undefined) continue;
    const { family, meaning, windowMs } = field;
    const isReset = meaning === 'reset';
    const value = isReset ? readNamedReset(text, made, windowMs) : readMeaning(meaning, text, made);
    if (value === undefined) continue;
    const member = isReset ? 'resetInMs' : QUOTA_MEMBERS[meaning];
    if (member === 'waitMs') waitMs = Math.max(waitMs ?? 0, value);
    else {
      const known: StatedQuota = { windowMs: shortWindow(windowMs), ...families.get(family), [member]: value };
      families.set(family, member === 'remaining' ? { ...known, field: name } : { field: name, ...known });
    }
  }
  const quotas = [...families.values()].filter(
    ({ quota, remaining }) => quota !== undefined || remaining !== undefined,
  );
  return { quotas, waitMs };
}

/** A number for longer than the window, or than an hour where the name states none, may count another unit: it is left out. */
function readNamedReset(text: string, made: MadeAt, windowMs = LONGEST_SPREAD_MS): number | undefined {
  const number = readNumber(text);
  return isDuration(number) && number * 1000 > windowMs ? undefined : readMeaning('resetIn', text, made);
}

/** The rest of a longer quota would be spread over its window where no reset is stated. */
function shortWindow(windowMs: number | undefined): number | undefined {
  return windowMs !== undefined && windowMs <= LONGEST_SPREAD_MS ? windowMs : undefined;
}

/** `39/40`, or `api-usage=39/40` among other members. */
const USAGE = /^(?:(?:.*[;,]\s*)?api-usage=)?(\d{1,12})\/(\d{1,12})(?:[;,].*)?$/;

/** Undefined for other text. */
export function readUsage(text: string): { readonly used: number; readonly limit: number } | undefined {
  const [, used, limit] = USAGE.exec(text) ?? [];
  return used === undefined || limit === undefined ? undefined : { used: Number(used), limit: Number(limit) };
}

function readUsageQuota(field: string, text: string | undefined): StatedQuota[] {
  const { used = 0, limit } = (text === undefined ? undefined : readUsage(text)) ?? {};
  const quota = positiveOrUndefined(limit);
  return quota === undefined ? [] : [{ quota, remaining: Math.max(0, quota - used), field }];
}

/** `20:1,100:120` with the used calls `1:1,2:120`, joined by the window's length. */
function readWindows(field: string, limits: string | undefined, counts: string | undefined): StatedQuota[] {
  const used = readPairs(counts);
  return [...readPairs(limits)].map(([seconds, quota]) => {
    const count = used.get(seconds);
    const remaining = count === undefined ? undefined : Math.max(0, quota - count);
    return { quota, windowMs: seconds * 1000, remaining, field };
  });
}

/** `20:1,100:120` as calls and seconds; empty for other text. */
export function readWindowPairs(text: string): { readonly calls: number; readonly seconds: number }[] {
  return [...readPairs(text)].map(([seconds, calls]) => ({ calls, seconds }));
}

/** Calls by seconds. */
function readPairs(text: string | undefined): Map<number, number> {
  const pairs = new Map<number, number>();
  for (const part of text?.split(',') ?? []) {
    const [, calls, seconds] = /^\s*(\d{1,12}):(\d{1,8})\s*$/.exec(part) ?? [];
    if (calls !== undefined && Number(seconds) > 0) pairs.set(Number(seconds), Number(calls));
  }
  return pairs;
}

const DURATION =
  /^(?=\d)(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,12}(?:\.\d{1,9})?)ms)?$/;

/** `1s`, `6m0s`, `120ms`: units are written, so nothing is guessed. */
export function readDurationMs(text: string): number | undefined {
  const parts = DURATION.exec(text);
  if (parts === null) return undefined;
  const [, hours = 0, minutes = 0, seconds = 0, ms = 0] = parts;
  const durationMs = Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1000 + Number(ms);
  return durationMs <= MAX_WAIT_MS ? durationMs : undefined;
}
