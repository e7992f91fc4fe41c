/**
 * The format of `throttle.limits`: a list of `{ calls, per }` with further members; in a variable a JSON array. Members that are not
 * given are filled in, so that the effective configuration shows them. throttle/declared counts.
 */
import type { DeclaredLimit } from '../../../throttle/declared/declared-limit.ts';
import { truncate } from '../../../platform/truncate.ts';
import { tryRead } from '../../../platform/try-read.ts';
import { ANY_SEGMENT } from '../../../throttle/declared/call-match.ts';
import { isForwardedMethod, isPlainPath } from './allow-rules.ts';
import type { JsonSchema } from './formats.ts';
import { isJsonObject } from '../../../token/endpoint/json-object.ts';
import { sectionList, type RawSection } from './one-or-many.ts';

const MAX_CALLS = 1_000_000_000;
const NAME = /^[a-z0-9-]{1,32}$/;
const PERIOD = /^(?:([1-9][0-9]{0,6})([smhd])|1mo)$/;
/** As partners write it: 10 000 calls per day. */
const PERIOD_NAMES = new Map<unknown, string>([
  ['second', '1s'],
  ['minute', '1m'],
  ['hour', '1h'],
  ['day', '1d'],
  ['month', '1mo'],
]);
const UNIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 };
const HOUR_SECONDS = UNIT_SECONDS.h;
const MAX_QUOTED_CHARS = 100;
const MAX_SECONDS = 31 * UNIT_SECONDS.d;
const DEFAULTS = { window: 'sliding', timeZone: 'UTC', countsRefused: true, spread: 'none', reserve: 0 } as const;

const LIMIT_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', pattern: NAME.source },
    calls: { type: 'integer', minimum: 1, maximum: MAX_CALLS },
    per: { type: 'string', pattern: `${PERIOD.source}|^(?:${[...PERIOD_NAMES.keys()].join('|')})$` },
    window: { enum: ['sliding', 'calendar'] },
    timeZone: { type: 'string', minLength: 1 },
    countsRefused: { type: 'boolean' },
    spread: { enum: ['none', 'even'] },
    reserve: { type: 'integer', minimum: 0, maximum: MAX_CALLS - 1 },
    match: {
      type: 'object',
      properties: {
        methods: { type: 'array', items: { type: 'string' }, minItems: 1 },
        path: { type: 'string', pattern: '^/' },
      },
      minProperties: 1,
      additionalProperties: false,
    },
    each: { type: 'boolean' },
  },
  required: ['calls', 'per'],
  additionalProperties: false,
};

/** A list of limits; empty by default. */
export const declaredLimits = sectionList<readonly DeclaredLimit[]>({
  noun: 'limit',
  maxEntries: 16,
  members: ['name', 'calls', 'per', ...Object.keys(DEFAULTS), 'match', 'each'],
  required: 'calls and per are',
  example: '[{"calls":350,"per":"10s"},{"calls":10000,"per":"1h"}]',
  section: 'calls and per, such as { calls: 350, per: 10s }',
  schema: LIMIT_SCHEMA,
  complete: (written) => {
    const given: RawSection = { ...written, per: PERIOD_NAMES.get(written.per) ?? written.per };
    const { calls, per, window } = given;
    // Without the calls, so that a limit that is raised keeps its count.
    const name = `per-${String(per)}${window === 'calendar' ? '-calendar' : ''}`;
    return { name, calls, per, ...DEFAULTS, ...given, match: completeMatch(given.match) };
  },
  describe: ({ name }) => (typeof name === 'string' && NAME.test(name) ? ` (${name})` : ''),
  findFault: (limit, earlier) =>
    findFault(limit) ??
    (earlier.some((other) => other.name === limit.name)
      ? 'name: an earlier limit has it too; expected another name'
      : undefined),
});

function findFault(limit: RawSection): string | undefined {
  const { name, calls, countsRefused, spread, reserve } = limit;
  if (!isWhole(calls, 1, MAX_CALLS))
    return `calls: expected a whole number from 1 to ${String(MAX_CALLS)}, without quotes`;
  const windowFault = findWindowFault(limit);
  if (windowFault !== undefined) return windowFault;
  if (typeof name !== 'string' || !NAME.test(name))
    return 'name: expected 1 to 32 small letters, digits and hyphens, in quotes';
  if (typeof countsRefused !== 'boolean') return 'countsRefused: expected true or false, without quotes';
  if (spread !== 'none' && spread !== 'even') return 'spread: expected none or even';
  if (!isWhole(reserve, 0, calls - 1))
    return `reserve: expected a whole number from 0 to ${String(calls - 1)}, below calls, without quotes`;
  return findMatchFault(limit);
}

/** Methods in capitals, and the plain object of a section of a file. */
function completeMatch(given: unknown): unknown {
  const match: unknown = given instanceof Map ? Object.fromEntries(given) : given;
  if (!isJsonObject(match) || !Array.isArray(match.methods)) return match;
  return {
    ...match,
    methods: match.methods.map((one: unknown) => (typeof one === 'string' ? one.toUpperCase() : one)),
  };
}

function findMatchFault({ match, each = false }: RawSection): string | undefined {
  if (typeof each !== 'boolean') return 'each: expected true or false, without quotes';
  const { methods, path, ...others } = isJsonObject(match) ? match : {};
  if (match !== undefined && ((methods ?? path) === undefined || Object.keys(others).length > 0))
    return `match: found ${quote(match)}; expected methods, path or both, such as { methods: [POST], path: /policies }`;
  const isList = Array.isArray(methods) && methods.length > 0;
  const wrongMethods: unknown = isList ? methods.find((method) => !isForwardedMethod(String(method))) : methods;
  if (wrongMethods !== undefined)
    return `match.methods: found ${quote(wrongMethods)}; expected a list of methods that are forwarded, such as [POST, PUT]`;
  const segments = typeof path === 'string' ? path.split('/') : [];
  const plain = segments.map((segment) => (segment === ANY_SEGMENT ? 'any' : segment)).join('/');
  if (path !== undefined && !isPlainPath(plain))
    return `match.path: found ${quote(path)}; expected a path such as /policies or /tenants/*, without a slash at its end, escapes, query, fragment or dot segments; * is one whole segment`;
  return each && !segments.includes(ANY_SEGMENT)
    ? `each: expected match with a path that has a segment *, such as /tenants/*; found ${quote(path ?? match)}`
    : undefined;
}

function quote(value: unknown): string {
  return value === undefined ? 'none' : truncate(JSON.stringify(value), MAX_QUOTED_CHARS);
}

function findWindowFault({ per, window, timeZone }: RawSection): string | undefined {
  const parts = typeof per === 'string' ? PERIOD.exec(per) : null;
  const [, number = 0, unit = 's'] = parts ?? [];
  const seconds = Number(number) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS];
  if (parts === null || seconds > MAX_SECONDS)
    return 'per: expected a whole number and s, m, h or d, such as 10s, at most 31d; 1mo; or second, minute, hour, day or month';
  if (window !== 'sliding' && window !== 'calendar') return 'window: expected sliding or calendar';
  const isOfDates = per === '1d' || per === '1mo';
  if (window === 'calendar' && !isOfDates && HOUR_SECONDS % seconds !== 0)
    return `window: ${String(per)} has no calendar; expected a length that divides an hour evenly, 1d or 1mo with calendar, or sliding`;
  if (timeZone === DEFAULTS.timeZone) return undefined;
  if (window !== 'calendar' || !isOfDates)
    return 'timeZone: of a calendar day or month only; expected per 1d or 1mo and window calendar with it';
  return isTimeZone(timeZone) ? undefined : 'timeZone: expected an IANA name such as Europe/Berlin';
}

/** An offset such as +01:00 is none: it knows no change of clocks. */
function isTimeZone(name: unknown): boolean {
  if (typeof name !== 'string' || !/^[A-Za-z]/.test(name)) return false;
  return tryRead(() => new Intl.DateTimeFormat('en', { timeZone: name })) !== undefined;
}

function isWhole(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
}
