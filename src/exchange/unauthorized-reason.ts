/** What a 401 says of the token in its challenge (RFC 6750 §3), in printable ASCII on one line, bounded and masked. */
import type { Redact } from '../platform/secret-redaction.ts';
import { findHeaderValues, listReceivedHeaders, type ResponseHead } from '../upstream/upstream-response.ts';

const MAX_LENGTH = 200;
/** More of a challenge is not read. */
const MAX_READ_LENGTH = 2048;
const ERROR = /\berror\s*=\s*"?([\w.-]{1,64})/i;
const DESCRIPTION = /\berror_description\s*=\s*"((?:[^"\\]|\\.)*)"/i;

/** Undefined where the response says nothing. @param mask for the text, before it is cut */
export function readUnauthorizedReason(head: ResponseHead, mask: Redact): string | undefined {
  const challenges = findHeaderValues(listReceivedHeaders(head), 'www-authenticate');
  const challenge = mask(challenges.join(', ').slice(0, MAX_READ_LENGTH));
  const [error, description] = [ERROR, DESCRIPTION].map((pattern) => pattern.exec(challenge)?.[1]);
  const words = description
    ?.replaceAll(/\\(.)/g, '$1')
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .slice(0, MAX_LENGTH)
    .trim();
  const said = [error, words].filter((part) => part !== undefined && part !== '').join(': ');
  return said === '' ? undefined : `the partner says "${said}"`;
}
