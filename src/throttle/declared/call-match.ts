/**
 * Which calls a declared limit with `match` counts. Paths are the client's, compared by whole segments and in every reading that a server may
 * have: a spelling that one of them takes for the path of the limit is counted. Dot segments are rejected before.
 */
import { hash } from 'node:crypto';
import { AMBIGUOUS_CHARACTERS, cleanSegment, decodeRounds } from '../../platform/path-readings.ts';

/** At least one member is given. */
export interface CallMatch {
  /** In capitals. Default: all. */
  readonly methods?: readonly string[] | undefined;
  /** With everything below it; a segment `*` stands for any one segment. Default: every path. */
  readonly path?: string | undefined;
}

/** What of a request decides which limits count it. */
export interface ReceivedCall {
  readonly method: string;
  /** Path and query of a client that calls the sidecar itself. */
  readonly target: string;
}

export const ANY_SEGMENT = '*';
const HASH_LENGTH = 16;

/** The segments of the target's path in each reading, the most decoded one first. */
export function readSegments(target: string): readonly (readonly string[])[] {
  const path = target.split('?', 1)[0] ?? '';
  if (!AMBIGUOUS_CHARACTERS.test(path)) return [path.split('/').filter(Boolean)];
  return decodeRounds(path)
    .reverse()
    .flatMap((decoded) => [decoded.split(/[/\\]/), decoded.split('/')])
    .flatMap(([, ...segments]) => [segments.filter(Boolean), segments])
    .flatMap((segments) => {
      const cleaned = segments.map(cleanSegment);
      return [cleaned.filter(Boolean), cleaned, segments];
    });
}

/** @returns what stands for the `*` segments, empty without one; undefined when the limit does not count the call */
export function findMatch(
  { methods, path = '/' }: CallMatch,
  method: string,
  readings: readonly (readonly string[])[],
): string | undefined {
  if (methods?.includes(method) === false) return undefined;
  const expected = path === '/' ? [] : path.slice(1).split('/');
  const found = readings.find((segments) =>
    expected.every((name, index) => segments[index] === name || (name === ANY_SEGMENT && index < segments.length)),
  );
  return found
    ?.filter((_, index) => expected[index] === ANY_SEGMENT)
    .map(decodeBytes)
    .join('/');
}

/** For people. */
export function describeMatch({ methods = [], path }: CallMatch): string {
  return [methods.join(','), path].filter(Boolean).join(' ');
}

/** Names calls in stored counts, which outlive this process: a tenant is shown to no one who reads them. */
export function hashText(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, HASH_LENGTH);
}

/** One byte a character, so that no spelling of a value is another value. */
function decodeBytes(segment: string): string {
  return segment.replace(/%([\da-f]{2})/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
}
