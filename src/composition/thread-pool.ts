/**
 * The number of threads for work that Node.js does beside the event loop: look-ups of names, files, cryptography. A look-up occupies one
 * until the name server responds, and look-ups get half of them: with libuv's 4, two slow names would stop all connections.
 */
import { isIP } from 'node:net';
import { authorizationServerUrl, type Config } from '../config/config.ts';
import { getHostAndPort } from '../platform/egress/proxy-selector.ts';

/** Libuv starts as many when the variable is not set. */
const DEFAULT_THREADS = 4;

/**
 * Two for each name that may be looked up at the same time: names of the configuration, and one each for what it does not name (the token
 * endpoint of an issuer, Redis, the receiver of spans).
 */
export function countThreads({ routes, credentials, egress, fleet }: Config): number {
  const servers = credentials.map(({ auth }) => authorizationServerUrl(auth));
  const urls = [...routes.map(({ upstream }) => upstream.baseUrl), ...servers, egress.proxy, egress.httpProxy];
  const hosts = new Set(urls.flatMap((url) => (url === undefined ? [] : getHostAndPort(url).host)));
  const names = [...hosts].filter((host) => isIP(host) === 0);
  const issuers = credentials.filter(({ auth }) => auth.endpoint.kind === 'issuer');
  const others = issuers.length + (fleet === undefined ? 0 : 1) + 1;
  return Math.max(DEFAULT_THREADS, 2 * (names.length + others));
}

/** To be called before the pool is first used, which is when libuv reads the variable. Changes nothing where it is set. */
export function sizeThreadPool(config: Config): void {
  process.env.UV_THREADPOOL_SIZE ??= String(countThreads(config));
}
