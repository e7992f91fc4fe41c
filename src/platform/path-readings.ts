/**
 * How servers may read a path that they decode once or several times, or clean up in other ways (pure). What must not depend on the reading,
 * which token is sent and which limit counts a call, is decided by all of them.
 */

/** How often a path is percent-decoded in search of hidden dot segments: some servers decode twice. */
const DECODE_ROUNDS = 3;
/** A character below 0x80: as an escape, as IIS's %u00XX, or in overlong (invalid) UTF-8 (RFC 3629 §3). */
const ESCAPE = /%(?:u00)?([0-7][\da-f])|%(?:c|e0%8|f0%80%8)([01])%([89ab][\da-f])/gi;

/** Characters that servers read in different ways: without one there is a single reading, the plain segments. */
export const AMBIGUOUS_CHARACTERS = /[%\\;]|\/\/|[\0- ]/;

/** The path as received, and after each further percent-decoding that changes it, as servers that decode several times read it. */
export function decodeRounds(path: string): string[] {
  const rounds = [path];
  for (let decoded = path; rounds.length <= DECODE_ROUNDS; rounds.push(decoded)) {
    const next = decoded.replace(ESCAPE, decodeEscape);
    if (next === decoded) break;
    decoded = next;
  }
  return rounds;
}

function decodeEscape(_: string, plain: string | undefined, high: string, low: string): string {
  return String.fromCharCode(plain === undefined ? Number(high) * 64 + (parseInt(low, 16) % 64) : parseInt(plain, 16));
}

/** How servers read the path that decode it, fold backslashes, drop `;parameters` and white space, or join slashes. */
export function* listReadings(path: string): Generator<Iterable<string>> {
  for (const decoded of decodeRounds(path)) {
    const segments = decoded.split(/[/\\]/).slice(1);
    yield normalizeSegments(segments, true);
    yield normalizeSegments(segments, false);
  }
}

/** A generator: a path may have thousands of segments, and the first few decide. */
function* normalizeSegments(segments: readonly string[], keepsEmpty: boolean): Generator<string> {
  for (const segment of segments) {
    const name = cleanSegment(segment);
    if (keepsEmpty || name !== '') yield name;
  }
}

/** The segment without `;parameters`, what follows `?` or `#`, and white space. */
export function cleanSegment(segment: string): string {
  return segment.replace(/[;?#].*$/s, '').replace(/[\0- ]/g, '');
}
