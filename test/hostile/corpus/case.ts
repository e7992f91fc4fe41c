/** The shape of one hostile (or merely unusual) request, and short ways to write tables of them. */

export interface HostileCase {
  /** Says in words what is unusual; unique. */
  readonly id: string;
  /** Where it is written what has to become of it. */
  readonly clause: string;
  /** Latin1. */
  readonly bytes: string;
  /** The client closes its sending side behind the last byte. */
  readonly sendsFin: boolean;
  readonly expected: Expectation;
}

export type Expectation =
  /**
   * Nothing may reach the upstream. `rfc`: by a MUST or SHOULD of the clause, or because it is outside the grammar;
   * `house`: the clause leaves a choice, or it is a rule of the guard's own. With `status` where the clause names one.
   */
  | { readonly kind: 'refuse'; readonly by: 'rfc' | 'house'; readonly status?: number }
  /** Exactly these requests reach it. */
  | { readonly kind: 'forward'; readonly requests: readonly Forwarded[] }
  /** Both are right; the upstream receives one well-formed request. */
  | { readonly kind: 'either' };

export interface Forwarded {
  readonly method: string;
  readonly target: string;
  readonly body: string;
  /** Fields that must not be there, trailers included; names in lower case. */
  readonly absent: readonly string[];
  /** Fields that must be there, with their values. */
  readonly present: Readonly<Record<string, string>>;
}

type Bytes = string | { readonly thenFin: string };

/** Requests that must be refused by the clause itself. */
export function refusedByRfc(clause: string, table: Readonly<Record<string, Bytes>>, status?: number): HostileCase[] {
  return toCases(clause, table, { kind: 'refuse', by: 'rfc', ...(status === undefined ? {} : { status }) });
}

/** Requests that the clause lets be refused, and that the sidecar refuses. */
export function refusedHere(clause: string, table: Readonly<Record<string, Bytes>>): HostileCase[] {
  return toCases(clause, table, { kind: 'refuse', by: 'house' });
}

export function leftOpen(clause: string, table: Readonly<Record<string, Bytes>>): HostileCase[] {
  return toCases(clause, table, { kind: 'either' });
}

/** Requests that must arrive; what is not said of one is a GET of /x without a body. */
export function forwarded(
  clause: string,
  table: Readonly<Record<string, readonly [bytes: string, ...arriving: Partial<Forwarded>[]]>>,
): HostileCase[] {
  return Object.entries(table).flatMap(([id, [bytes, ...arriving]]) => {
    const requests = (arriving.length === 0 ? [{}] : arriving).map((request) => ({
      method: 'GET',
      target: '/x',
      body: '',
      absent: [],
      present: {},
      ...request,
    }));
    return toCases(clause, { [id]: bytes }, { kind: 'forward', requests });
  });
}

function toCases(clause: string, table: Readonly<Record<string, Bytes>>, expected: Expectation): HostileCase[] {
  return Object.entries(table).map(([id, bytes]) =>
    typeof bytes === 'string'
      ? { id, clause, bytes, sendsFin: false, expected }
      : { id, clause, bytes: bytes.thenFin, sendsFin: true, expected },
  );
}

export const HOST = 'Host: localhost\r\n';
export const CLOSE = 'Connection: close\r\n';
export const HEAD = HOST + CLOSE;

/** A whole request with this request line. */
export function withLine(requestLine: string): string {
  return `${requestLine}\r\n${HEAD}\r\n`;
}

/** A GET of this target. */
export function get(target: string): string {
  return withLine(`GET ${target} HTTP/1.1`);
}

/** A GET of /x with these field lines, each without its end. */
export function withFields(...lines: readonly string[]): string {
  return `GET /x HTTP/1.1\r\n${HEAD}${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
}

/** A POST to /x with these field lines in one text, each with its end, and what follows the head. */
export function post(lines: string, content = ''): string {
  return `POST /x HTTP/1.1\r\n${HEAD}${lines}\r\n${content}`;
}

/** A chunked POST to /x; the content is written as it is. */
export function chunked(content: string): string {
  return post('Transfer-Encoding: chunked\r\n', content);
}

/** A second request that was not sent. */
export const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n';
