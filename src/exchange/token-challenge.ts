/**
 * What a response says of the token (RFC 6750 §3), in its challenge or in a JSON body that was read anyway: masked, bounded, and fit for a log.
 */
import type { Redact } from '../platform/secret-redaction.ts';
import { readErrorBody } from '../token/endpoint/error-response.ts';
import { findHeaderValues, listReceivedHeaders, type ResponseHead } from '../upstream/upstream-response.ts';

const SCOPE_MAX_LENGTH = 256;
const INSUFFICIENT_SCOPE = /\berror\s*=\s*"?insufficient_scope\b/i;
/** The characters of RFC 6749 §3.3. */
const REQUIRED_SCOPE = /[\s,]scope\s*=\s*"([\x21\x23-\x5b\x5d-\x7e ]+)"/i;
const MAX_LENGTH = 200;
/** More of a challenge is not read. */
const MAX_READ_LENGTH = 2048;
const ERROR = /\berror\s*=\s*"?([\w.-]{1,64})/i;
const DESCRIPTION = /\berror_description\s*=\s*"((?:[^"\\]|\\.)*)"/i;

/**
 * The scope that a 403 asks for, or undefined when it names none; undefined for another response. Neither a wait nor a new token helps.
 * @param mask for the scope, before it is cut. Default: none
 */
export function readInsufficientScope(
  head: Pick<ResponseHead, 'status' | 'headers' | 'connectionHeaders'>,
  mask: Redact = (text) => text,
): { readonly needed: string | undefined } | undefined {
  if (head.status !== 403) return undefined;
  const challenge = readChallenges(head).find((value) => INSUFFICIENT_SCOPE.test(value));
  if (challenge === undefined) return undefined;
  return { needed: REQUIRED_SCOPE.exec(mask(challenge))?.[1]?.slice(0, SCOPE_MAX_LENGTH) };
}

/**
 * What a 401 says, in printable ASCII on one line; undefined where it says nothing.
 * @param mask for the text, before it is cut
 * @param body a longer one is not read
 */
export function readUnauthorizedReason(head: ResponseHead, mask: Redact, body?: Buffer): string | undefined {
  const challenge = mask(readChallenges(head).join(', ').slice(0, MAX_READ_LENGTH));
  const [error, quoted] = [ERROR, DESCRIPTION].map((pattern) => pattern.exec(challenge)?.[1]);
  const ofBody = body === undefined || body.length > MAX_READ_LENGTH ? undefined : readErrorBody(mask(body.toString()));
  const description = quoted?.replaceAll(/\\(.)/g, '$1') ?? ofBody?.description;
  const said = [error ?? ofBody?.oauthCode, description]
    .map((part = '') =>
      part
        .replaceAll(/[^\x20-\x7e]+/g, ' ')
        .slice(0, MAX_LENGTH)
        .trim(),
    )
    .filter((part) => part !== '')
    .join(': ');
  return said === '' ? undefined : `the partner says "${said}"`;
}

function readChallenges(head: Pick<ResponseHead, 'headers' | 'connectionHeaders'>): readonly string[] {
  return findHeaderValues(listReceivedHeaders(head), 'www-authenticate');
}
