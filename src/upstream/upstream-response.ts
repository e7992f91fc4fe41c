/**
 * Reads the head of an upstream's response from undici's raw list, in one pass, and whether it says where its body ends (RFC 9112
 * §6.3). Undici's parser refuses most contradictions itself; it miscounts a length followed by white space, and passes on a body in a
 * transfer coding that it has not removed. Pure.
 */
import type { Dispatcher } from 'undici';
import { REQUEST_ID } from '../platform/request-id.ts';
import { parseConnectionOptions, responseHeaderClasses } from './headers.ts';

/** What a response head says: a value, for every status. */
export interface ResponseHead {
  readonly status: number;
  /** Empty where it could not be sent on (RFC 9112 §4). */
  readonly statusText: string;
  /** Flat list [name, value, …] as received; of a response that can be relayed the end-to-end ones. */
  readonly headers: readonly string[];
  /** The fields of the connection (RFC 9110 §7.6.1). Default: they are among `headers` */
  readonly connectionHeaders?: readonly string[] | undefined;
  /** The name of a header suggests a limit. Default: it may */
  readonly mayStateLimit?: boolean | undefined;
  readonly contentType?: string | undefined;
  readonly contentLength?: string | undefined;
  /** The upstream's id of the call; undefined: it sent none. */
  readonly requestId?: string | undefined;
  /** Why the end of a body cannot be determined; undefined when it can. */
  readonly framingFault?: string | undefined;
}

/** A response head that can be relayed. */
export interface UpstreamResponse extends ResponseHead {
  /** Node:http takes the list itself. */
  readonly headers: string[];
  /** Some headers have values that are rewritten for the client. */
  readonly isRewritten: boolean;
  /** What it takes in memory; 0 for what each request may take anyway. */
  readonly memoryBytes: number;
}

/** With those of the connection: what they say counts here, although they end here. */
export function listReceivedHeaders({
  headers,
  connectionHeaders,
}: Pick<ResponseHead, 'headers' | 'connectionHeaders'>): readonly string[] {
  return connectionHeaders === undefined ? headers : [...headers, ...connectionHeaders];
}

/** The values of the fields of a name in lower case. @param headers flat list [name, value, …] */
export function findHeaderValues(headers: readonly string[], lowerCaseName: string): string[] {
  return headers.filter((_, at) => at % 2 === 1 && headers[at - 1]?.toLowerCase() === lowerCaseName);
}

/** As far as a number counts exactly. */
const PLAIN_LENGTH = /^\d{1,15}$/;
/** Older servers send `identity`, which changes nothing. */
const REMOVED_CODING = /^(?:chunked|identity)$/i;
const SENDABLE_REASON_PHRASE = /^[\t -~\x80-\xff]*$/;

/** @param raw undici's list of names and values: buffers, with HTTP/1.1 */
export function readResponseHead(
  status: number,
  statusText: string,
  raw: Dispatcher.DispatchController['rawHeaders'],
): UpstreamResponse {
  return new ReceivedHead(status, statusText, (Array.isArray(raw) ? raw : []) as readonly Buffer[]);
}

/** What undici's buffers and our texts of a field take beside its bytes, which are in both. */
const FIELD_BYTES = 280;
/** Part of what each request may take (HEAD_BYTES in composition/budgets.ts). */
const PLANNED_BYTES = 16 * 1024;

class ReceivedHead implements UpstreamResponse {
  readonly status: number;
  readonly statusText: string;
  headers: string[];
  connectionHeaders: readonly string[] | undefined;
  isRewritten = false;
  mayStateLimit = false;
  contentType: string | undefined;
  contentLength: string | undefined;
  requestId: string | undefined;
  memoryBytes = 0;
  framingFault: string | undefined;
  #hasCoding = false;

  constructor(status: number, statusText: string, parts: readonly Buffer[]) {
    this.status = status;
    this.statusText = statusText === 'OK' || SENDABLE_REASON_PHRASE.test(statusText) ? statusText : '';
    this.headers = new Array<string>(parts.length);
    let kept = 0;
    let mayHaveId = false;
    let bytes = parts.length * (FIELD_BYTES / 2);
    for (let at = 0; at + 1 < parts.length; at += 2) {
      // Bytes above 0x7f stay as they are.
      const name = parts[at]?.toString('latin1') ?? '';
      const value = parts[at + 1]?.toString('latin1') ?? '';
      bytes += 2 * (name.length + value.length);
      const known = responseHeaderClasses.known.get(name) ?? responseHeaderClasses.find(name);
      if (known.isRemoved) {
        this.connectionHeaders = [...(this.connectionHeaders ?? []), name, value];
      } else {
        this.headers[kept++] = name;
        this.headers[kept++] = value;
      }
      if (known.isLimitRelated) this.mayStateLimit = true;
      if (known.rewrite !== undefined) this.isRewritten = true;
      if (IS_LENGTH_OF_NAME[name.length] === true) mayHaveId = true;
      if (known.lower === 'content-type') this.contentType ??= value;
      else if (known.isFraming) this.#readFraming(known.lower, value);
    }
    this.headers.length = kept;
    if (bytes > PLANNED_BYTES) this.memoryBytes = bytes;
    if (mayHaveId) this.requestId = findUpstreamRequestId(this.headers);
    if (this.connectionHeaders !== undefined) this.#removeNominated(this.connectionHeaders);
  }

  #readFraming(name: string, value: string): void {
    const isLength = name === 'content-length';
    if (this.contentLength !== undefined || this.#hasCoding)
      this.framingFault = 'more than one Content-Length or Transfer-Encoding';
    else if (!(isLength ? PLAIN_LENGTH : REMOVED_CODING).test(value))
      this.framingFault = isLength
        ? 'a Content-Length that is not a plain number'
        : 'a Transfer-Encoding other than chunked';
    if (isLength) this.contentLength = value;
    else this.#hasCoding = true;
  }

  #removeNominated(connectionHeaders: readonly string[]): void {
    const nominated = parseConnectionOptions(connectionHeaders);
    if (nominated.size === 0) return;
    const all = this.headers;
    const isNominated = (at: number): boolean =>
      nominated.has(responseHeaderClasses.find(all[at - (at % 2)] ?? '').lower);
    this.headers = all.filter((_, at) => !isNominated(at));
    this.connectionHeaders = [...connectionHeaders, ...all.filter((_, at) => isNominated(at))];
  }
}

/** The first that is there, and valid, is taken. */
const NAMES = ['x-request-id', 'x-correlation-id', 'request-id', 'x-amzn-requestid', 'cf-ray'];
/** By the length of a name: most fields are passed over without a lower-case copy. */
const IS_LENGTH_OF_NAME: readonly boolean[] = Array.from({ length: 17 }, (_, length) =>
  NAMES.some((name) => name.length === length),
);

/**
 * The id that an upstream gave to a call, in the header fields that APIs and gateways use for one.
 * @param headers flat list [name, value, …] of a response @returns undefined when there is no valid one
 */
export function findUpstreamRequestId(headers: readonly string[]): string | undefined {
  let found: string | undefined;
  let rank = NAMES.length;
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    if (IS_LENGTH_OF_NAME[name.length] !== true) continue;
    const nameRank = NAMES.indexOf(name.toLowerCase());
    const value = headers[at + 1] ?? '';
    if (nameRank < 0 || nameRank >= rank || !REQUEST_ID.test(value)) continue;
    found = value;
    rank = nameRank;
  }
  return found;
}
