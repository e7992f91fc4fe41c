/** Span attributes of requests and servers, after OpenTelemetry's semantic conventions for HTTP. Paths have no query. */
import type { Attributes } from '@opentelemetry/api';
import type { TracedAttempt } from '../../exchange/request-tracer.ts';
import { KNOWN_METHODS } from '../metrics/route-metrics.ts';
import { truncate } from '../../platform/truncate.ts';

/** `HTTP` for a non-standard method: span names must be few. */
export function spanNameOfMethod(method: string): string {
  return KNOWN_METHODS.has(method) ? method : 'HTTP';
}

/** The method; a non-standard one also as it was sent. */
export function describeMethod(method: string): Attributes {
  if (KNOWN_METHODS.has(method)) return { 'http.request.method': method };
  return { 'http.request.method': '_OTHER', 'http.request.method_original': truncate(method) };
}

/** The address and port of a server. */
export function describeServer({ protocol, hostname, port }: URL): Attributes {
  const usual = protocol === 'https:' ? 443 : 80;
  return { 'server.address': hostname, 'server.port': port === '' ? usual : Number(port) };
}

/** @param resends earlier attempts of the same request */
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
