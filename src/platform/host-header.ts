/** Parses the Host field of a request, of which there must be exactly one (RFC 9112 §3.2). Pure. */
import { quoteForMessage } from './truncate.ts';

export interface HostPort {
  /** Lower case; IPv6 in brackets. */
  readonly host: string;
  readonly port: number | undefined;
}

/** The address of one of the two ports. */
export type ListenAddress =
  /** `localhost` means every loopback family of this machine (127.0.0.1 and, where present, ::1). IPv6 without brackets. */
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

/** `uri-host [ ":" port ]` of RFC 3986 §3.2, not empty, and without the comma, which shows that a recipient joined two field lines. */
const HOST_PORT =
  /^(\[(?:[\da-f:.]+|v[\da-f]+\.[\w.~!$&'()*+;=:-]+)\]|(?:[\w.~!$&'()*+;=-]|%[\da-f]{2})+)(?::(\d*))?$/i;
const LARGEST_PORT = 65_535;

/** Undefined when the text is not a host with an optional port. */
export function parseHostPort(text: string): HostPort | undefined {
  const [, host, port = ''] = HOST_PORT.exec(text) ?? [];
  if (host === undefined || Number(port) > LARGEST_PORT) return undefined;
  // The URL parser checks the forms of an IPv6 address.
  if (/^\[[^v]/i.test(host) && !URL.canParse(`http://${host}/`)) return undefined;
  return { host: host.toLowerCase(), port: port === '' ? undefined : Number(port) };
}

/** A fault follows "the request has". @param hosts the values of all Host fields, as received */
export function parseHostHeader(hosts: readonly string[]) {
  const [value] = hosts;
  if (value === undefined) return { kind: 'absent' } as const;
  if (hosts.length > 1) return { kind: 'invalid', fault: `${String(hosts.length)} Host fields` } as const;
  const hostPort = parseHostPort(value);
  if (hostPort !== undefined) return { kind: 'valid', value, hostPort } as const;
  return { kind: 'invalid', fault: `the invalid Host ${quoteForMessage(value)}` } as const;
}
