/**
 * The format of `throttle.limits`: a list of `{ calls, per }` with further members; in a variable a JSON array. Members that are not
 * given are filled in, so that the effective configuration shows them. throttle/declared counts.
 */
import type { DeclaredLimit } from '../../../throttle/declared/declared-limit.ts';
import { format, type Format, type JsonSchema } from './formats.ts';
import { parseJson } from './one-or-many.ts';

type Entry = Readonly<Record<keyof DeclaredLimit, unknown>>;

const MAX_LIMITS = 16;
const MAX_CALLS = 1_000_000_000;
const NAME = /^[a-z0-9-]{1,32}$/;
const PERIOD = /^(?:([1-9][0-9]{0,6})([smhd])|1mo)$/;
const UNIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 };
const HOUR_SECONDS = UNIT_SECONDS.h;
const MAX_SECONDS = 31 * UNIT_SECONDS.d;
const EXAMPLE = '[{"calls":350,"per":"10s"},{"calls":10000,"per":"1h"}]';
const DEFAULTS = { window: 'sliding', timeZone: 'UTC', countsRefused: true, spread: 'none', reserve: 0 } as const;
const MEMBERS: readonly string[] = ['name', 'calls', 'per', ...Object.keys(DEFAULTS)];

const LIMIT_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', pattern: NAME.source },
    calls: { type: 'integer', minimum: 1, maximum: MAX_CALLS },
    per: { type: 'string', pattern: PERIOD.source },
    window: { enum: ['sliding', 'calendar'] },
    timeZone: { type: 'string', minLength: 1 },
    countsRefused: { type: 'boolean' },
    spread: { enum: ['none', 'even'] },
    reserve: { type: 'integer', minimum: 0, maximum: MAX_CALLS - 1 },
  },
  required: ['calls', 'per'],
  additionalProperties: false,
};

/** A list of limits; empty by default. The fault names every entry that is wrong. */
export function declaredLimits(): Format<readonly DeclaredLimit[]> {
  const expected = `a list of { ${MEMBERS.join(', ')} }, of which calls and per are required; in a variable a JSON array such as ${EXAMPLE}`;
  return format({
    expected,
    check: (value) => {
      if (!Array.isArray(value)) return false;
      const limits = value as unknown[];
      if (limits.length > MAX_LIMITS) return `expected at most ${String(MAX_LIMITS)} limits`;
      const faults = limits.flatMap((limit, at) => {
        const fault = findFault(limit) ?? findNamesake(limit as Entry, limits.slice(0, at));
        return fault === undefined ? [] : [`${describeEntry(limit, at)}: ${fault}`];
      });
      return faults.length === 0 || faults.join('; ');
    },
    fromText: (text) => complete(parseJson(text) ?? text),
    fromFile: complete,
    schema: { type: 'array', items: LIMIT_SCHEMA, maxItems: MAX_LIMITS },
  });
}

/** Entries of another kind stay as they are: the check refuses them. */
function complete(value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  return value.map((entry: unknown) => {
    const given: unknown = entry instanceof Map ? Object.fromEntries(entry) : entry;
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return given;
    const { calls, per, window } = given as Partial<Entry>;
    // Without the calls, so that a limit that is raised keeps its count.
    return { name: `per-${String(per)}${window === 'calendar' ? '-calendar' : ''}`, calls, per, ...DEFAULTS, ...given };
  });
}

function describeEntry(limit: unknown, at: number): string {
  const name = (limit as Partial<Entry> | null)?.name;
  return `limit ${String(at + 1)}${typeof name === 'string' && NAME.test(name) ? ` (${name})` : ''}`;
}

function findNamesake({ name }: Entry, earlier: readonly unknown[]): string | undefined {
  const isSame = (other: unknown): boolean => (other as Partial<Entry> | null)?.name === name;
  return earlier.some(isSame) ? 'name: an earlier limit has it too; expected another name' : undefined;
}

function findFault(limit: unknown): string | undefined {
  if (typeof limit !== 'object' || limit === null || Array.isArray(limit))
    return 'expected a section with calls and per, such as { calls: 350, per: 10s }';
  const unknown = Object.keys(limit).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined)
    return `unknown member ${JSON.stringify(unknown.slice(0, 40))}; expected ${MEMBERS.join(', ')}`;
  const { name, calls, countsRefused, spread, reserve, ...window } = limit as Entry;
  if (!isWhole(calls, 1, MAX_CALLS))
    return `calls: expected a whole number from 1 to ${String(MAX_CALLS)}, without quotes`;
  const windowFault = findWindowFault(window);
  if (windowFault !== undefined) return windowFault;
  if (typeof name !== 'string' || !NAME.test(name))
    return 'name: expected 1 to 32 small letters, digits and hyphens, in quotes';
  if (typeof countsRefused !== 'boolean') return 'countsRefused: expected true or false, without quotes';
  if (spread !== 'none' && spread !== 'even') return 'spread: expected none or even';
  return isWhole(reserve, 0, calls - 1)
    ? undefined
    : `reserve: expected a whole number from 0 to ${String(calls - 1)}, below calls, without quotes`;
}

function findWindowFault({ per, window, timeZone }: Pick<Entry, 'per' | 'window' | 'timeZone'>): string | undefined {
  const parts = typeof per === 'string' ? PERIOD.exec(per) : null;
  const seconds = parts === null ? NaN : periodSeconds(parts);
  if (parts === null || seconds > MAX_SECONDS)
    return 'per: expected a whole number and s, m, h or d, such as 10s, at most 31d; or 1mo';
  if (window !== 'sliding' && window !== 'calendar') return 'window: expected sliding or calendar';
  const isOfDates = per === '1d' || per === '1mo';
  if (window === 'calendar' && !isOfDates && HOUR_SECONDS % seconds !== 0)
    return `window: ${String(per)} has no calendar; expected a length that divides an hour evenly, 1d or 1mo with calendar, or sliding`;
  if (timeZone === DEFAULTS.timeZone) return undefined;
  if (window !== 'calendar' || !isOfDates)
    return 'timeZone: of a calendar day or month only; expected per 1d or 1mo and window calendar with it';
  return isTimeZone(timeZone) ? undefined : 'timeZone: expected an IANA name such as Europe/Berlin';
}

function periodSeconds([, number, unit]: RegExpExecArray): number {
  return number === undefined ? 0 : Number(number) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS];
}

/** An offset such as +01:00 is none: it knows no change of clocks. */
function isTimeZone(name: unknown): boolean {
  if (typeof name !== 'string' || !/^[A-Za-z]/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

function isWhole(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
}
