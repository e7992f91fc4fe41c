/**
 * The header fields in which servers state a limit: none, Retry-After (RFC 9110 §10.2.3) as seconds or date, the fields of
 * draft-ietf-httpapi-ratelimit-headers-11, its older forms, and the X- fields with three kinds of reset.
 */
import type { Allowance } from './limiter-model.ts';

export const HINT_STYLES = [
  'none',
  'retry-after-seconds',
  'retry-after-date',
  'ratelimit',
  'ratelimit-combined',
  'ratelimit-separate',
  'x-ratelimit-delta',
  'x-ratelimit-epoch-s',
  'x-ratelimit-epoch-ms',
] as const;

export type HintStyle = (typeof HINT_STYLES)[number];

/** The state of a server at one response. */
export interface HintContext {
  /** Milliseconds since the start of the run. */
  readonly at: number;
  /** Epoch milliseconds of the server's clock. */
  readonly wallAt: number;
  readonly accepted: boolean;
  /** When the next call would be accepted; used in refusals only. */
  readonly retryAt: number;
  readonly allowance: Allowance | undefined;
  /** The quota as stated in a policy: `limit` calls in `windowMs`. */
  readonly limit: number;
  readonly windowMs: number;
}

export type ResponseHeaders = Readonly<Record<string, string>>;

const NO_HEADERS: ResponseHeaders = {};

/** The header fields of one response, names in lower case. Seconds are rounded up, so that a client that obeys is never early. */
export function writeHints(style: HintStyle, context: HintContext): ResponseHeaders {
  switch (style) {
    case 'none':
      return NO_HEADERS;
    case 'retry-after-seconds':
      return context.accepted ? NO_HEADERS : { 'retry-after': `${retrySeconds(context)}` };
    case 'retry-after-date':
      return context.accepted
        ? NO_HEADERS
        : { ...writeDateHeader(context), 'retry-after': httpDate(retryWallAt(context)) };
    default:
      return context.allowance === undefined ? NO_HEADERS : writeAllowance(style, context, context.allowance);
  }
}

type AllowanceStyle = Exclude<HintStyle, 'none' | `retry-after-${string}`>;

function writeAllowance(
  style: AllowanceStyle,
  context: HintContext,
  { remaining, resetAt }: Allowance,
): ResponseHeaders {
  const { at, wallAt, limit, windowMs } = context;
  // A refusal states when a call would be accepted, even if a window is reset earlier.
  const resetMs = (context.accepted ? resetAt : Math.max(resetAt, context.retryAt)) - at;
  const left = context.accepted ? remaining : 0;
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  switch (style) {
    case 'ratelimit':
      return {
        'ratelimit-policy': `"default";q=${limit};w=${Math.max(1, Math.ceil(windowMs / 1000))}`,
        ratelimit: `"default";r=${left};t=${seconds}`,
      };
    case 'ratelimit-combined':
      return { ratelimit: `limit=${limit}, remaining=${left}, reset=${seconds}` };
    case 'ratelimit-separate':
      return writeSeparateHeaders('ratelimit', limit, left, seconds);
    case 'x-ratelimit-delta':
      return writeSeparateHeaders('x-ratelimit', limit, left, seconds);
    case 'x-ratelimit-epoch-s':
      return {
        ...writeDateHeader(context),
        ...writeSeparateHeaders('x-ratelimit', limit, left, Math.ceil((wallAt + resetMs) / 1000)),
      };
    case 'x-ratelimit-epoch-ms':
      return {
        ...writeDateHeader(context),
        ...writeSeparateHeaders('x-ratelimit', limit, left, Math.ceil(wallAt + resetMs)),
      };
  }
}

function writeSeparateHeaders(family: string, limit: number, remaining: number, reset: number): ResponseHeaders {
  return { [`${family}-limit`]: `${limit}`, [`${family}-remaining`]: `${remaining}`, [`${family}-reset`]: `${reset}` };
}

/** Without a known time (calls in flight), servers state one second. */
function retrySeconds({ at, retryAt }: HintContext): number {
  return retryAt === Infinity ? 1 : Math.max(1, Math.ceil((retryAt - at) / 1000));
}

function retryWallAt(context: HintContext): number {
  const { at, wallAt, retryAt } = context;
  return Math.ceil((wallAt + (retryAt === Infinity ? 1000 : retryAt - at)) / 1000) * 1000;
}

/** A server that states instants sends a Date too (RFC 9110 §6.6.1). */
function writeDateHeader({ wallAt }: HintContext): ResponseHeaders {
  return { date: httpDate(wallAt) };
}

function httpDate(wallAt: number): string {
  return new Date(wallAt).toUTCString();
}
