/** The faults of connecting through a forward proxy; their messages name the proxy and never its credentials. Pure. */
import { ProxyFault } from '../connection-faults.ts';
import { describeFault } from '../faults.ts';

const SETTINGS = {
  address: 'egress.proxy (SIDECAR_EGRESS_PROXY) or HTTPS_PROXY',
  ca: 'egress.caFile (SIDECAR_EGRESS_CA_FILE)',
};

/** The connection to the proxy failed. @param proxy host and port */
export function createProxyConnectionFault(proxy: string, error: unknown): ProxyFault {
  return new ProxyFault(proxy, { ...describeFault(error, SETTINGS), cause: 'egress_proxy' });
}

/** The proxy accepted the connection, or not even that, and sent no response to CONNECT. */
export function createProxyTimeoutFault(proxy: string, afterMs: number): ProxyFault {
  return new ProxyFault(proxy, {
    cause: 'egress_proxy',
    proxyStatus: 'connection_timeout',
    permanence: undefined,
    words: `opened no connection within ${String(afterMs)} ms`,
    advice: `check host and port in ${SETTINGS.address}; ask who runs the proxy whether other destinations work`,
  });
}

/**
 * The proxy responded to CONNECT with another status than 2xx.
 * @param destination host and port
 */
export function createProxyRejectionFault(
  proxy: string,
  destination: string,
  status: number,
  { challenge = '', hasCredentials = false } = {},
): ProxyFault {
  const reject = (words: string, advice: string): ProxyFault => {
    const fault = { cause: 'egress_proxy', proxyStatus: 'destination_unavailable', permanence: 'certain' } as const;
    return new ProxyFault(proxy, { ...fault, words: `${words} (${String(status)})`, advice });
  };
  const schemes = [...challenge.matchAll(/(?:^|, *)([A-Za-z][\w-]*)(?= |,|$)(?! *=)/g)].map(
    ([, scheme = '']) => scheme,
  );
  if (status === 407 && schemes.length > 0 && !schemes.some((scheme) => /^basic$/i.test(scheme)))
    return reject(
      `asks for credentials by ${schemes.join(' or ').slice(0, MAX_SCHEMES_CHARS)}, which is not supported`,
      'ask who runs the proxy for Basic or for an exception for this machine, or set a local proxy that speaks this scheme',
    );
  // tinyproxy responds with 401 to a wrong password, with 407 to a missing one.
  if (status === 407 || status === 401)
    return hasCredentials
      ? reject('does not accept the credentials', `check user and password in ${SETTINGS.address}`)
      : reject('asks for credentials', `add user and password to ${SETTINGS.address}`);
  if (NO_TUNNEL.has(status))
    return reject('opens no tunnels', `check host and port in ${SETTINGS.address}: a web server seems to listen there`);
  if (status >= 400 && status < 500)
    return reject(
      `does not allow a connection to ${destination}`,
      `let the proxy allow ${destination} for this user, or add the host to egress.noProxy (SIDECAR_EGRESS_NO_PROXY)`,
    );
  return new ProxyFault(proxy, {
    cause: 'beyond_egress_proxy',
    proxyStatus: 'destination_unavailable',
    permanence: undefined,
    words: `could not connect to ${destination} (${String(status)})`,
    advice: 'ask who runs the proxy whether other destinations work; if they do, ask the partner',
  });
}

const MAX_SCHEMES_CHARS = 60;
/** What servers that are no proxies respond to CONNECT. */
const NO_TUNNEL: ReadonlySet<number> = new Set([400, 404, 405, 501]);
