/**
 * Parses an assertion that another party has issued (a JWT in compact form, RFC 7519), and decides whether it may be sent to the
 * token endpoint (RFC 7523 §3). Pure. The authorization server verifies the signature: the issuer's keys are not known here.
 */
import { quoteForMessage } from '../../platform/truncate.ts';
import { tryRead } from '../../platform/try-read.ts';
import { parseJsonObject } from '../endpoint/json-object.ts';

/** What decides whether the assertion is sent, and what may be shown of it. Values of another party: not cleaned. */
export interface AssertionClaims {
  readonly issuer: string;
  /** Undefined = none; the authorization server decides whether it accepts that. */
  readonly subject: string | undefined;
  readonly audiences: readonly string[];
  /** Epoch milliseconds. */
  readonly expiresWallAt: number;
  /** Epoch milliseconds; undefined = at once. */
  readonly notBeforeWallAt: number | undefined;
}

/** The clock of the issuer may be ahead by this much. An expired assertion has no leeway. */
const NOT_BEFORE_LEEWAY_MS = 5_000;

const MAX_QUOTED_CHARS = 200;
const MAX_QUOTED_AUDIENCES = 3;
const MAX_DATE_MS = 8.64e15;

/** The claims, or a fault, which follows the name of the file and shows nothing of its contents. Never throws. */
export function parseAssertion(text: string): AssertionClaims | string {
  const parts = text.split('.');
  if (parts.length !== 3 || parts.some((part) => !/^[\w-]*$/.test(part)))
    return 'holds no signed JWT; expected three base64url parts with dots between them';
  const [header, payload] = parts.slice(0, 2).map(parseJsonPart);
  if (header === undefined || payload === undefined)
    return 'holds no JWT; expected a JSON object in each of its first two parts';
  if (typeof header.alg !== 'string' || header.alg.toLowerCase() === 'none' || parts[2] === '')
    return 'holds a JWT without a signature; expected a signed one';
  const { iss: issuer, sub: subject, aud, exp, nbf } = payload;
  const audiences = parseAudiences(aud);
  if (audiences === undefined) return 'holds a JWT with an invalid "aud"; expected a text, or a list with one text';
  if (typeof issuer !== 'string' || issuer === '') return 'holds a JWT without an issuer; expected the claim "iss"';
  if (!isNumericDate(exp)) return 'holds a JWT without an expiry; expected the claim "exp", a number of seconds';
  if (nbf !== undefined && !isNumericDate(nbf))
    return 'holds a JWT with an invalid "nbf"; expected a number of seconds, or none';
  return {
    issuer,
    subject: typeof subject === 'string' ? subject : undefined,
    audiences,
    expiresWallAt: exp * 1000,
    notBeforeWallAt: nbf === undefined ? undefined : nbf * 1000,
  };
}

/** `exp` of a JWT, epoch milliseconds; undefined without one, and for any other text. */
export function readJwtExpiry(text: string): number | undefined {
  const parts = text.split('.');
  const exp = parts.length === 3 ? parseJsonPart(parts[1] ?? '')?.exp : undefined;
  return isNumericDate(exp) ? exp * 1000 : undefined;
}

/**
 * Why the assertion must not be sent, as text that follows the name of the file; undefined when it may be sent.
 * @param expected the only audience that it may have, compared character by character
 * @param wallNow epoch milliseconds
 */
export function findAssertionFault(claims: AssertionClaims, expected: string, wallNow: number): string | undefined {
  const { issuer, audiences, expiresWallAt, notBeforeWallAt } = claims;
  const wanted = `expected auth.assertionFileAudience, ${quoteClaim(expected)}`;
  // First, because it explains the wrong audience too: the issuer itself would accept this token.
  if (audiences.includes(issuer))
    return `holds a JWT whose audience is its own issuer, ${quoteClaim(issuer)}, as in the cluster's default token, which must not leave the cluster; ${wanted}`;
  if (audiences.length !== 1)
    return `holds a JWT with ${audiences.length === 0 ? 'no audience' : `the audiences ${quoteClaims(audiences)}`}; ${wanted}, alone`;
  if (audiences[0] !== expected) return `holds a JWT for the audience ${quoteClaims(audiences)}; ${wanted}`;
  if (expiresWallAt <= wallNow)
    return `holds a JWT that expired at ${formatInstant(expiresWallAt)}; expected one that its issuer renews before that`;
  if (notBeforeWallAt !== undefined && notBeforeWallAt > wallNow + NOT_BEFORE_LEEWAY_MS)
    return `holds a JWT that is valid from ${formatInstant(notBeforeWallAt)} only; expected one that is valid now, ${formatInstant(wallNow)}`;
  return undefined;
}

/** Issuer, subject, audience and expiry on one line, shortened and in printable ASCII. */
export function describeAssertion({ issuer, subject, audiences, expiresWallAt }: AssertionClaims): string {
  const about = subject === undefined ? 'no subject' : `subject ${quoteClaim(subject)}`;
  const end = formatInstant(expiresWallAt);
  return `issuer ${quoteClaim(issuer)}, ${about}, audience ${quoteClaims(audiences)}, valid until ${end}`;
}

function parseJsonPart(part: string): Readonly<Record<string, unknown>> | undefined {
  const decode = () => new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(part, 'base64url'));
  return parseJsonObject(tryRead(decode) ?? '');
}

/** A NumericDate (RFC 7519 §2), which may have a fraction. */
function isNumericDate(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value * 1000) <= MAX_DATE_MS;
}

/** Undefined when it is neither a string nor a list of strings (RFC 7519 §4.1.3). */
function parseAudiences(value: unknown = []): readonly string[] | undefined {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.every((audience) => typeof audience === 'string') ? values : undefined;
}

function quoteClaims(values: readonly string[]): string {
  const shown = values.slice(0, MAX_QUOTED_AUDIENCES).map(quoteClaim).join(', ');
  return values.length > MAX_QUOTED_AUDIENCES ? `${shown} and ${values.length - MAX_QUOTED_AUDIENCES} more` : shown;
}

function quoteClaim(value: string): string {
  return quoteForMessage(value, MAX_QUOTED_CHARS);
}

function formatInstant(wallAt: number): string {
  return new Date(wallAt).toISOString().replace(/\.\d+Z$/, 'Z');
}
