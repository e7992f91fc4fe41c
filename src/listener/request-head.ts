/**
 * The head of a request as the listener uses it, read in one pass over the raw fields: parsed ones hide repetitions (RFC 9112 §3.2).
 * Pure.
 */
import { memoize } from '../platform/memoize.ts';

const FIELDS = {
  host: 'hosts',
  'content-length': 'contentLengths',
  'transfer-encoding': 'transferCodings',
  origin: 'origins',
  referer: 'referers',
  'sec-fetch-site': 'fetchSites',
  'access-control-request-method': 'preflightMethods',
  'x-request-id': 'requestIds',
  traceparent: 'traceParents',
  'x-sidecar-timeout-ms': 'timeouts',
  'x-sidecar-priority': 'priorities',
  'x-sidecar-caller': 'callers',
} as const;

type HeadField = (typeof FIELDS)[keyof typeof FIELDS];

const FIELD_BY_NAME: ReadonlyMap<string, HeadField> = new Map(Object.entries(FIELDS));
/** The values of a field that did not come. */
const NO_VALUES: readonly string[] = [];

/** What node:http and the sidecar keep of a request with one short field, and of each further field beside its bytes. Measured. */
const REQUEST_BYTES = 6 * 1024;
const FIELD_BYTES = 190;

/** The values of the fields that the listener reads, in the order received. */
export class RequestHead implements Record<HeadField, readonly string[]> {
  hosts = NO_VALUES;
  contentLengths = NO_VALUES;
  transferCodings = NO_VALUES;
  origins = NO_VALUES;
  referers = NO_VALUES;
  fetchSites = NO_VALUES;
  preflightMethods = NO_VALUES;
  requestIds = NO_VALUES;
  traceParents = NO_VALUES;
  timeouts = NO_VALUES;
  priorities = NO_VALUES;
  callers = NO_VALUES;
  /** The values of the field that admits clients. */
  required = NO_VALUES;
  /** One of the fields by which a request is found again, or asks something of the sidecar itself, has come. */
  hasOptional = false;
  /** Origin, Referer or Sec-Fetch-Site has come. */
  mayComeFromPage = false;
  /** An estimate of the memory that it takes until its request has ended. */
  bytes = REQUEST_BYTES;
}

const OPTIONAL = /^(?:x-|traceparent$)/;
const OF_PAGES = /^(?:origin|referer|sec-fetch-site)$/;

export type ReadRequestHead = (rawHeaders: readonly string[]) => RequestHead;

/** @param requiredName of `listen.requiredHeader`, in lower case. Default: none @returns reads a flat list [name, value, …] */
export function createHeadReader(requiredName?: string): ReadRequestHead {
  const classes = memoize((name) => {
    const lower = name.toLowerCase();
    const field = FIELD_BY_NAME.get(lower);
    const isOptional = field !== undefined && OPTIONAL.test(lower);
    return { field, isOptional, isOfPages: OF_PAGES.test(lower), isRequired: lower === requiredName };
  });
  return (rawHeaders) => {
    const head = new RequestHead();
    head.bytes += (rawHeaders.length / 2) * FIELD_BYTES;
    for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
      const name = rawHeaders[at] ?? '';
      const value = rawHeaders[at + 1] ?? '';
      head.bytes += name.length + value.length;
      const { field, isOptional, isOfPages, isRequired } = classes.known.get(name) ?? classes.find(name);
      if (field !== undefined) head[field] = head[field] === NO_VALUES ? [value] : [...head[field], value];
      if (isOptional) head.hasOptional = true;
      if (isOfPages) head.mayComeFromPage = true;
      if (isRequired) head.required = [...head.required, value];
    }
    return head;
  };
}

/** For requests that no guard has read. */
export const readRequestHead = createHeadReader();
