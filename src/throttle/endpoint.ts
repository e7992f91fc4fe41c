/**
 * Groups calls by endpoint (pure): the method and the form of the path, with segments that look like an identifier left out. Who counts by
 * endpoint bounds their number.
 */
const MAX_LENGTH = 256;
const MAX_SEGMENTS = 4;
/** A longer segment is an identifier, and so is one with a digit. */
const MAX_WORD_LENGTH = 24;
const SLASH = 0x2f;
const DIGITS = { first: 0x30, last: 0x39 };

/** The endpoint of a call, such as `GET /policies/*`: of the path its first four segments, without the query. */
export function describeEndpoint(method: string, path: string): string {
  const queryAt = path.indexOf('?');
  const end = Math.min(queryAt < 0 ? path.length : queryAt, MAX_LENGTH);
  let described = `${method} `;
  let describedTo = 0;
  let segmentStart = 0;
  let slashes = 0;
  let hasDigit = false;
  for (let at = 0; at < end; at++) {
    const code = path.charCodeAt(at);
    if (code >= DIGITS.first && code <= DIGITS.last) hasDigit = true;
    const isLast = at + 1 === end;
    if (code !== SLASH && !isLast) continue;
    const segmentEnd = code === SLASH ? at : end;
    if (slashes > 0 && (hasDigit || segmentEnd - segmentStart > MAX_WORD_LENGTH)) {
      described += `${path.slice(describedTo, segmentStart)}*`;
      describedTo = segmentEnd;
    }
    if (code === SLASH && ++slashes > MAX_SEGMENTS) return described + path.slice(describedTo, at);
    segmentStart = at + 1;
    hasDigit = false;
  }
  return described + path.slice(describedTo, end);
}
