/**
 * The id by which a request is found again: its client's, that of its trace, or one of this process, which is made when it is first needed.
 * Which header fields hold an id is known where they are read.
 */
import { randomBytes } from 'node:crypto';

/** What may stand in a header field, a log line and a page as it is. */
export const REQUEST_ID = /^[!-~]{1,128}$/;

/** Distinguishes this process from its replicas and from itself before a restart. */
const PROCESS_ID = randomBytes(6)
  .toString('hex')
  // Letters alone, since digits with an `e` between them look like a number.
  .replaceAll(/\d/g, (digit) => 'ghijklmnop'.charAt(Number(digit)));
let made = 0;

/** The id, which is made and kept if there is none. */
export function ensureRequestId(identified: { requestId?: string | undefined }): string {
  // `join` returns a flat string. With a concatenated string, JSON.stringify of the log line takes twice as long (V8 14.6).
  return (identified.requestId ??= [PROCESS_ID, ++made].join('-'));
}
