/** Reads from a 403 that the token lacks a scope (RFC 6750 §3.1): neither a wait nor a new token helps. */
import type { Redact } from '../platform/secret-redaction.ts';
import { findHeaderValues, listReceivedHeaders, type ResponseHead } from '../upstream/upstream-response.ts';

const SCOPE_MAX_LENGTH = 256;
const INSUFFICIENT_SCOPE = /\berror\s*=\s*"?insufficient_scope\b/i;
/** The characters of RFC 6749 §3.3. */
const REQUIRED_SCOPE = /[\s,]scope\s*=\s*"([\x21\x23-\x5b\x5d-\x7e ]+)"/i;

/**
 * The scope that the response asks for, bounded, or undefined when it names none; undefined for another response.
 * @param mask for the scope, before it is cut. Default: none
 */
export function readInsufficientScope(
  head: Pick<ResponseHead, 'status' | 'headers' | 'connectionHeaders'>,
  mask: Redact = (text) => text,
): { readonly needed: string | undefined } | undefined {
  if (head.status !== 403) return undefined;
  const challenges = findHeaderValues(listReceivedHeaders(head), 'www-authenticate');
  const challenge = challenges.find((value) => INSUFFICIENT_SCOPE.test(value));
  if (challenge === undefined) return undefined;
  return { needed: REQUIRED_SCOPE.exec(mask(challenge))?.[1]?.slice(0, SCOPE_MAX_LENGTH) };
}
