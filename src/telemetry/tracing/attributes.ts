/** How requests and servers are described in spans: the semantic conventions for HTTP of OpenTelemetry. Paths go without their query. */
import type { Attributes } from '@opentelemetry/api';
import type { TracedAttempt } from '../../exchange/request-tracer.ts';
import { KNOWN_METHODS } from '../metrics/known-methods.ts';
import { truncate } from '../log/shown.ts';

/** `HTTP` for a method that somebody made up: names of spans are few. */
export function spanNameOfMethod(method: string): string {
  return KNOWN_METHODS.has(method) ? method : 'HTTP';
}

/** The method, and as it was sent when it is not a usual one. */
export function describeMethod(method: string): Attributes {
  if (KNOWN_METHODS.has(method)) return { 'http.request.method': method };
  return { 'http.request.method': '_OTHER', 'http.request.method_original': truncate(method) };
}

/** Where a server is. */
export function describeServer({ protocol, hostname, port }: URL): Attributes {
  const usual = protocol === 'https:' ? 443 : 80;
  return { 'server.address': hostname, 'server.port': port === '' ? usual : Number(port) };
}

/** @param resends attempts of the same request before this one */
export function describeAttempt({ method, baseUrl, path }: TracedAttempt, resends: number): Attributes {
  const bare = truncate(withoutQuery(path));
  return {
    ...describeMethod(method),
    ...describeServer(baseUrl),
    'url.full': `${baseUrl.origin}${bare}`,
    'url.path': bare,
    ...(resends === 0 ? {} : { 'http.request.resend_count': resends }),
  };
}

function withoutQuery(path: string): string {
  return path.split(/[?#]/, 1)[0] ?? '';
}
