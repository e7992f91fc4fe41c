/**
 * Reads the head of an upstream's response from undici's raw list, in one pass, and whether it says where its body ends (RFC 9112
 * §6.3). Undici's parser refuses most contradictions itself; it miscounts a length followed by white space, and passes on a body in a
 * transfer coding that it has not removed. Pure.
 */
import type { Dispatcher } from 'undici';
import { REQUEST_ID } from '../platform/request-id.ts';
import { namesNoHeader, parseConnectionOptions, responseHeaderClasses } from './headers.ts';

/** What a response head says: a value, for every status. */
export interface ResponseHead {
  readonly status: number;
  /** Empty where it could not be sent on (RFC 9112 §4). */
  readonly statusText: string;
  /** Flat list [name, value, …] as received. */
  readonly headers: readonly string[];
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
  /** The end-to-end headers: flat list [name, value, …]. */
  readonly endToEnd: string[];
  /** Some of them have values that are rewritten for the client. */
  readonly isRewritten: boolean;
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
  const parts = (Array.isArray(raw) ? raw : []) as readonly Buffer[];
  const headers = new Array<string>(parts.length);
  const endToEnd: string[] = [];
  let isRewritten = false;
  let mayStateLimit = false;
  let nominates = false;
  let mayHaveId = false;
  let contentType: string | undefined;
  let contentLength: string | undefined;
  let lengths = 0;
  let coding: string | undefined;
  let codings = 0;
  for (let at = 0; at + 1 < parts.length; at += 2) {
    // Bytes above 0x7f stay as they are.
    const name = parts[at]?.toString('latin1') ?? '';
    const value = parts[at + 1]?.toString('latin1') ?? '';
    headers[at] = name;
    headers[at + 1] = value;
    const { lower, isRemoved, rewrite, isLimitRelated } =
      responseHeaderClasses.known.get(name) ?? responseHeaderClasses.find(name);
    if (!isRemoved) endToEnd.push(name, value);
    if (isLimitRelated) mayStateLimit = true;
    if (rewrite !== undefined) isRewritten = true;
    if (IS_LENGTH_OF_NAME[name.length] === true) mayHaveId = true;
    switch (lower) {
      case 'content-type':
        contentType ??= value;
        break;
      case 'content-length':
        contentLength = value;
        lengths++;
        break;
      case 'transfer-encoding':
        coding = value;
        codings++;
        break;
      case 'connection':
        if (!namesNoHeader(value)) nominates = true;
    }
  }
  const framingFault = lengths + codings > 1 ? CONTRADICTION : findFramingFault(contentLength, coding);
  const phrase = statusText === 'OK' || SENDABLE_REASON_PHRASE.test(statusText) ? statusText : '';
  const requestId = mayHaveId ? findUpstreamRequestId(headers) : undefined;
  return {
    ...{ status, statusText: phrase, headers, isRewritten, mayStateLimit },
    endToEnd: nominates ? withoutNominated(endToEnd, headers) : endToEnd,
    ...{ contentType, contentLength, requestId, framingFault },
  };
}

function withoutNominated(endToEnd: readonly string[], headers: readonly string[]): string[] {
  const nominated = parseConnectionOptions(headers);
  return endToEnd.filter((_, at) => !nominated.has(responseHeaderClasses.find(endToEnd[at - (at % 2)] ?? '').lower));
}

const CONTRADICTION = 'more than one Content-Length or Transfer-Encoding';

function findFramingFault(contentLength: string | undefined, coding: string | undefined): string | undefined {
  if (contentLength !== undefined && !PLAIN_LENGTH.test(contentLength))
    return 'a Content-Length that is not a plain number';
  return coding === undefined || REMOVED_CODING.test(coding) ? undefined : 'a Transfer-Encoding other than chunked';
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
