/**
 * What a 401 says of the token, in its challenge (RFC 6750 §3) or in a JSON body that was read anyway, in printable ASCII on one line, bounded
 * and masked.
 */
import type { Redact } from '../platform/secret-redaction.ts';
import { readErrorBody } from '../token/endpoint/error-response.ts';
import { findHeaderValues, listReceivedHeaders, type ResponseHead } from '../upstream/upstream-response.ts';

const MAX_LENGTH = 200;
/** More of a challenge is not read. */
const MAX_READ_LENGTH = 2048;
const ERROR = /\berror\s*=\s*"?([\w.-]{1,64})/i;
const DESCRIPTION = /\berror_description\s*=\s*"((?:[^"\\]|\\.)*)"/i;

/** Undefined where the response says nothing. @param mask for the text, before it is cut @param body a longer one is not read */
export function readUnauthorizedReason(head: ResponseHead, mask: Redact, body?: Buffer): string | undefined {
  const challenges = findHeaderValues(listReceivedHeaders(head), 'www-authenticate');
  const challenge = mask(challenges.join(', ').slice(0, MAX_READ_LENGTH));
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
