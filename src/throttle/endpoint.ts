/**
 * Groups calls by endpoint (pure): the method and the form of the path, with segments that look like an identifier left out. Who counts by
 * endpoint bounds their number.
 */
const MAX_LENGTH = 256;
/** The first four segments. */
const BEGINNING = /^(?:[^/]*\/){0,4}[^/]*/;
const IDENTIFIERS = /(?<=\/)(?:[^/\d]*\d[^/]*|[^/]{25,})/g;

/** The endpoint of a call, such as `GET /policies/*`. The query is left out. */
export function describeEndpoint(method: string, path: string): string {
  const queryAt = path.indexOf('?');
  const beginning = BEGINNING.exec(path.slice(0, queryAt < 0 ? MAX_LENGTH : Math.min(queryAt, MAX_LENGTH)));
  return `${method} ${(beginning?.[0] ?? '').replace(IDENTIFIERS, '*')}`;
}
