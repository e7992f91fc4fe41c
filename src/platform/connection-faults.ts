/** The errors of opening a connection and of reading a response, which the table of faults (faults.ts) explains. Pure. */
import type { FaultCause } from '../telemetry/events.ts';
import type { ProxyStatusError } from './errors.ts';

export interface Fault {
  readonly cause: FaultCause;
  readonly proxyStatus: ProxyStatusError;
  /** A clause that follows the server, with the error code and the addresses that were tried. */
  readonly words: string;
  /** In lower case, without a full stop. */
  readonly advice: string;
  /**
   * Whether a repeat is of no use; undefined: it may succeed. `likely`: not repeated unless a connection to the same name has just succeeded, so
   * that only a part of its servers can have the fault.
   */
  readonly permanence: 'certain' | 'likely' | undefined;
}

export interface TriedAddress {
  /** With its port, as in a URL. */
  readonly address: string;
  /** `connected`, `no answer` so far, or an error code. */
  outcome: string;
}

/** A missing address family gives them as well. */
export const NO_ROUTE_CODES: ReadonlySet<string> = new Set([
  'ENETUNREACH',
  'EHOSTUNREACH',
  'EADDRNOTAVAIL',
  'EAFNOSUPPORT',
]);

/** A name was not resolved in time, none of its addresses accepted a connection, or a connection was not ready in time. */
export class ConnectFault extends Error {
  override readonly name = 'ConnectFault';
  /** What came of the first address that there is a route to, or else of the first one. */
  readonly code: string;
  /** The limit that ended it; undefined when every address failed before. */
  readonly limitMs: number | undefined;
  /** How far it had come. */
  readonly stage: 'lookup' | 'connect' | 'handshake';
  /** A clause that follows a sentence: the addresses of a name with what came of each. Empty where there are none to name. */
  readonly addresses: string;

  /** @param host name or address @param limitMs Default: every address failed @param stage Default: as the addresses say */
  constructor(host: string, tried: readonly TriedAddress[], limitMs?: number, stage?: ConnectFault['stage']) {
    super('no connection was opened');
    const codes = tried.map(({ outcome }) => outcome);
    const code = codes.find((each) => !NO_ROUTE_CODES.has(each)) ?? codes[0] ?? 'ENOTFOUND';
    this.code = limitMs === undefined ? code : 'ETIMEDOUT';
    this.limitMs = limitMs;
    const reached = codes.includes('connected') ? 'handshake' : codes.length > 0 ? 'connect' : 'lookup';
    this.stage = stage ?? reached;
    const isName = tried.some(({ address }) => !address.includes(host));
    this.addresses = isName ? `; tried ${formatTried(tried)}` : '';
  }
}

/** The addresses with what came of each. */
export function formatTried(tried: readonly TriedAddress[]): string {
  return tried.map(({ address, outcome }) => `${address} (${outcome})`).join(', ');
}

/** A connection was cut after it was open, and before the TLS handshake was complete. */
export class HandshakeReset extends Error {
  override readonly name = 'HandshakeReset';
  readonly code = 'ECONNRESET';
  /** Whether the server had sent anything. */
  readonly hasReceived: boolean;

  constructor(hasReceived: boolean) {
    super('the TLS handshake was cut');
    this.hasReceived = hasReceived;
  }
}

/** The egress proxy opened no connection: no byte has reached the destination. The message begins with the proxy. */
export class ProxyFault extends Error {
  override readonly name = 'ProxyFault';
  readonly fault: Fault;

  /** @param proxy host and port @param fault its words follow the proxy */
  constructor(proxy: string, fault: Fault) {
    const message = `the egress proxy ${proxy} ${fault.words}`;
    super(message);
    this.fault = { ...fault, words: `cannot be reached: ${message}` };
  }
}

/** The code of a Node error, or of the first error of an AggregateError; otherwise the name of the error. */
export function errorCodeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown';
  if ('code' in error && typeof error.code === 'string') return error.code;
  if ('errors' in error && Array.isArray(error.errors)) return errorCodeOf(error.errors[0]);
  return 'name' in error && typeof error.name === 'string' ? error.name : 'unknown';
}

/** Most header fields of a response: a thousand short ones would take ten times the memory of their bytes. */
export const MAX_RESPONSE_FIELDS = 500;

/** The header section of a response, or its trailer section, is larger than is accepted. */
export class HeaderOverflow extends Error {
  override readonly name = 'HeaderOverflow';
  readonly code = 'HEADER_OVERFLOW';
  readonly hasTooManyFields: boolean;
  /** A clause that follows the server. */
  readonly text: string;

  /** @param bytes of names and values, as far as they were read @param fields of these. Default: not known */
  constructor(limitBytes: number, bytes: number, fields = 0) {
    super('the header section is too large');
    this.hasTooManyFields = fields > MAX_RESPONSE_FIELDS;
    const limit = this.hasTooManyFields ? String(MAX_RESPONSE_FIELDS) : `${String(limitBytes)} bytes of`;
    const seen = `${String(bytes)} bytes${fields > 0 ? ` in ${String(fields)}` : ''} so far`;
    this.text = `sent more than ${limit} header fields (${seen})`;
  }
}

/** What the parser could not read, from where it stopped, each byte as a character; empty for other errors. */
export function readReceivedBytes(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('data' in error) return Buffer.from((error.data ?? '') as string | Uint8Array).toString('latin1');
  if (!('rawPacket' in error) || !(error.rawPacket instanceof Uint8Array)) return '';
  const start = 'bytesParsed' in error ? Number(error.bytesParsed) : 0;
  return Buffer.from(error.rawPacket.subarray(start)).toString('latin1');
}
