/**
 * Reads requests as strictly as RFC 9112 writes them, from bytes as they came: what a careful origin server would take
 * for a request, and nothing else. Knows nothing of the parsers that the proxies under test use.
 */

export interface WitnessedRequest {
  readonly method: string;
  readonly target: string;
  readonly version: 'HTTP/1.0' | 'HTTP/1.1';
  /** Names in lower case, values trimmed, in order. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** The same with names as they were written. */
  readonly rawFields: WitnessedRequest['fields'];
  /** Names of the trailer section, in lower case. */
  readonly trailers: readonly string[];
  /** Without its chunk framing, latin1. */
  readonly body: string;
}

export type Reading =
  | { readonly kind: 'request'; readonly request: WitnessedRequest; readonly length: number }
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'malformed'; readonly why: string };

const REQUEST_LINE = /^([\w!#$%&'*+.^`|~-]+) ([\x21-\x7e\x80-\xff]+) HTTP\/1\.([01])$/;
const FIELD_LINE = /^([\w!#$%&'*+.^`|~-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;

/** @param bytes latin1, from the first byte of a request on */
export function readRequest(bytes: string): Reading {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return { kind: 'incomplete' };
  const [requestLine = '', ...lines] = bytes.slice(0, headEnd).split('\r\n');
  const [, method, target, minor] = REQUEST_LINE.exec(requestLine) ?? [];
  if (method === undefined || target === undefined) return malformed(`request line ${JSON.stringify(requestLine)}`);
  const rawFields = readFields(lines);
  if (rawFields === undefined) return malformed('field line');
  const fields = rawFields.map(([name, value]) => [name.toLowerCase(), value] as const);
  const hosts = fields.filter(([name]) => name === 'host');
  if (hosts.length !== 1) return malformed(`${hosts.length} Host fields`);
  const content = readContent(bytes, headEnd + 4, fields);
  if (!('body' in content)) return content;
  const { body, trailers, end } = content;
  const version = `HTTP/1.${minor === '0' ? '0' : '1'}` as const;
  return { kind: 'request', request: { method, target, version, fields, rawFields, trailers, body }, length: end };
}

/** All values of a field, in order; `name` in lower case. */
export function valuesOf(request: WitnessedRequest, name: string): string[] {
  return request.fields.filter(([candidate]) => candidate === name).map(([, value]) => value);
}

interface Content {
  readonly body: string;
  readonly trailers: readonly string[];
  readonly end: number;
}

type Unread = Exclude<Reading, { kind: 'request' }>;

function readContent(bytes: string, start: number, fields: WitnessedRequest['fields']): Content | Unread {
  const lengths = fields.filter(([name]) => name === 'content-length').map(([, value]) => value);
  const codings = fields.filter(([name]) => name === 'transfer-encoding').map(([, value]) => value);
  if (lengths.length + codings.length > 1) return malformed('length stated more than once');
  if (codings[0] !== undefined) {
    return /^chunked$/i.test(codings[0]) ? readChunks(bytes, start) : malformed(`coding ${codings[0]}`);
  }
  const [length = '0'] = lengths;
  if (!/^\d{1,15}$/.test(length)) return malformed(`Content-Length ${JSON.stringify(length)}`);
  const end = start + Number(length);
  return bytes.length < end ? { kind: 'incomplete' } : { body: bytes.slice(start, end), trailers: [], end };
}

function readChunks(bytes: string, start: number): Content | Unread {
  let body = '';
  for (let at = start; ;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return { kind: 'incomplete' };
    const size = bytes.slice(at, lineEnd);
    if (!/^[\da-f]{1,8}$/i.test(size)) return malformed(`chunk size ${JSON.stringify(size)}`);
    const dataEnd = lineEnd + 2 + parseInt(size, 16);
    if (parseInt(size, 16) === 0) return readTrailers(bytes, lineEnd, body);
    if (bytes.length < dataEnd + 2) return { kind: 'incomplete' };
    if (bytes.slice(dataEnd, dataEnd + 2) !== '\r\n') return malformed('chunk without its end');
    body += bytes.slice(lineEnd + 2, dataEnd);
    at = dataEnd + 2;
  }
}

/** @param lineEnd of the last chunk's size line */
function readTrailers(bytes: string, lineEnd: number, body: string): Content | Unread {
  const end = bytes.indexOf('\r\n\r\n', lineEnd);
  if (end < 0) return { kind: 'incomplete' };
  const trailers = readFields(bytes.slice(lineEnd, end).split('\r\n').slice(1));
  if (trailers === undefined) return malformed('trailer line');
  return { body, trailers: trailers.map(([name]) => name.toLowerCase()), end: end + 4 };
}

function readFields(lines: readonly string[]): WitnessedRequest['fields'] | undefined {
  const fields = lines.map((line) => {
    const [, name, value] = FIELD_LINE.exec(line) ?? [];
    return name === undefined ? undefined : ([name, (value ?? '').trimEnd()] as const);
  });
  return fields.includes(undefined) ? undefined : fields.filter((field) => field !== undefined);
}

function malformed(why: string): Unread {
  return { kind: 'malformed', why };
}
