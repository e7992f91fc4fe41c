/**
 * Reads quotas from structured fields (RFC 9651): RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-08 to
 * -11, and the lists and the dictionary of earlier drafts (pure). Quotas in units other than requests (bytes, concurrent requests)
 * are left out. A field that does not parse is ignored as a whole (§4.2).
 */
import { parseDictionary, parseList, Token } from 'structured-headers';
import type { MadeAt } from '../origin-clock.ts';
import { tryRead } from '../try-read.ts';
import { numberOrUndefined, positiveOrUndefined, secondsToMs, waitMsOf } from './header-values.ts';
import type { StatedQuota } from './stated-quota.ts';

/** True when all our calls draw on the part of the policy's quota that this partition key names. */
export type IsOwnPartition = (policy: string, partition: string) => boolean;

interface Item {
  /** The policy's name; the quota itself in drafts before 08. */
  readonly value: unknown;
  readonly parameters: ReadonlyMap<string, unknown>;
  readonly partition: string | undefined;
}

/** Matches the dictionary form and not the list form. */
const DICTIONARY = /^[a-z*][\w.*-]*=/;

/**
 * `RateLimit: "burst";r=50;t=30`, joined by name and partition with `RateLimit-Policy: "burst";q=100;w=60`, and then the
 * policies without a limit. A policy of the older drafts is `100;w=60`.
 */
export function readStructuredQuotas(
  rateLimit: string | undefined,
  rateLimitPolicy: string | undefined,
  isOwnPartition: IsOwnPartition,
): StatedQuota[] {
  const policies = readItems(rateLimitPolicy);
  const isList = rateLimit !== undefined && !DICTIONARY.test(rateLimit);
  const limits = (isList ? readItems(rateLimit) : []).filter(
    ({ parameters }) => numberOrUndefined(parameters.get('r')) !== undefined,
  );
  const joinedPolicies = new Set<Item>();
  const stated = limits.flatMap((limit) => {
    const policy = policies.find((candidate) => candidate.value === limit.value && isSamePartition(candidate, limit));
    if (policy !== undefined) joinedPolicies.add(policy);
    if (!appliesToOurRequests(policy ?? limit, isOwnPartition)) return [];
    const remaining = numberOrUndefined(limit.parameters.get('r'));
    const resetInMs = secondsToMs(numberOrUndefined(limit.parameters.get('t')));
    return [{ ...policyOf(policy), remaining, resetInMs, field: 'ratelimit' }];
  });
  const withoutLimit = policies.filter(
    (policy) => !joinedPolicies.has(policy) && appliesToOurRequests(policy, isOwnPartition),
  );
  return [...stated, ...withoutLimit.map((policy) => ({ ...policyOf(policy), field: 'ratelimit-policy' }))];
}

/** `100, 100;w=60, 1000;w=3600` in RateLimit-Limit, up to draft 06: the quota in force, then the policies. */
export function readLimitField(text: string | undefined): {
  readonly limit: number | undefined;
  readonly policies: readonly StatedQuota[];
} {
  const quotas = readItems(text).map(policyOf);
  return { limit: quotas[0]?.quota, policies: quotas.filter(({ windowMs }) => windowMs !== undefined) };
}

/** `RateLimit: limit=10, remaining=0, reset=5`, the form of draft 07; undefined for other forms. */
export function readDictionaryQuota(text: string | undefined, made: MadeAt): StatedQuota | undefined {
  if (text === undefined || !DICTIONARY.test(text)) return undefined;
  const members = new Map(parseOrEmpty(parseDictionary, text));
  const member = (name: string): number | undefined => numberOrUndefined(members.get(name)?.[0]);
  const remaining = member('remaining');
  const resetInMs = waitMsOf(member('reset'), made);
  if (remaining === undefined && resetInMs === undefined) return undefined;
  return { quota: positiveOrUndefined(member('limit')), remaining, resetInMs, field: 'ratelimit' };
}

/** Members and parameters with a number, whose keys are part of a draft; other keys and texts may be anything. */
const NUMERIC_KEYS = ['limit', 'remaining', 'reset', 'r', 't', 'q', 'w'];
const MAX_NUMERIC_ITEMS = 8;

/** The numbers of a list or a dictionary, item by item; an item's own number is its `value`. Empty for other text. */
export function readNumericItems(text: string): Readonly<Record<string, number>>[] {
  const items = DICTIONARY.test(text)
    ? [[...parseOrEmpty(parseDictionary, text)].map(([key, [value]]) => [key, value] as const)]
    : readItems(text).map(({ value, parameters }) => [['value', value] as const, ...parameters]);
  const isShown = (entry: readonly [string, unknown]): entry is readonly [string, number] =>
    typeof entry[1] === 'number' && (entry[0] === 'value' || NUMERIC_KEYS.includes(entry[0]));
  return items
    .map((entries) => Object.fromEntries(entries.filter(isShown)))
    .filter((item) => Object.keys(item).length > 0)
    .slice(0, MAX_NUMERIC_ITEMS);
}

function policyOf(item: Item | undefined): StatedQuota {
  if (item === undefined) return {};
  const quota = numberOrUndefined(typeof item.value === 'number' ? item.value : item.parameters.get('q'));
  const windowMs = secondsToMs(numberOrUndefined(item.parameters.get('w')));
  return { quota: positiveOrUndefined(quota), windowMs: positiveOrUndefined(windowMs) };
}

function appliesToOurRequests({ value, parameters, partition }: Item, isOwnPartition: IsOwnPartition): boolean {
  const unit = parameters.get('qu');
  if (unit !== undefined && nameOf(unit) !== 'requests') return false;
  return partition === undefined || isOwnPartition(nameOf(value), partition);
}

/** A partition that only one of the two fields names is the same. */
function isSamePartition(one: Item, other: Item): boolean {
  return one.partition === undefined || other.partition === undefined || one.partition === other.partition;
}

function readItems(text: string | undefined): Item[] {
  const items: Item[] = [];
  for (const item of parseOrEmpty(parseList, text)) {
    const [value, parameters]: readonly [unknown, ReadonlyMap<string, unknown>] = item;
    // No draft has inner lists.
    if (Array.isArray(value)) continue;
    const key = parameters.get('pk');
    const partition = key === undefined ? undefined : nameOf(key);
    items.push({ value: typeof value === 'number' ? value : nameOf(value), parameters, partition });
  }
  return items;
}

/** A string, a token or a byte sequence as text. */
function nameOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value instanceof ArrayBuffer) return String.fromCharCode(...new Uint8Array(value));
  return value instanceof Token ? value.toString() : JSON.stringify(value);
}

function parseOrEmpty<T>(parse: (text: string) => Iterable<T>, text: string | undefined): Iterable<T> {
  return text === undefined ? [] : (tryRead(() => parse(text)) ?? []);
}
