/** The egress proxies, each looked at once however many destinations are behind it. */
import type { Config } from '../../config/config.ts';
import { nameOf } from '../../config/load/problems.ts';
import type { Proxy } from '../../platform/egress/egress.ts';
import { trustContext } from '../../platform/tls.ts';
import { Walk } from './walk.ts';
import type { Step, Surroundings } from './walk.ts';
import { destinationOf, walkTo } from './way.ts';

export interface Proxies {
  /** Whether it takes connections; for one that was not looked at, true. */
  isReached(proxy: Proxy): Promise<boolean>;
  /** What was found, in the order of the settings. */
  readonly steps: Promise<readonly Step[]>;
}

/** For one that is on this machine or in its network a second would do. */
const TIMEOUT_MS = 5000;

/** @param isUsed whether a destination is behind one of them */
export function checkProxies(egress: Config['egress'], isUsed: boolean, surroundings: Surroundings): Proxies {
  const reached = new Map<string, Promise<boolean>>();
  const walks: Walk[] = [];
  const given = [
    [egress.proxy, 'egress.proxy'],
    [egress.httpProxy, 'egress.httpProxy'],
  ] as const;
  for (const [url, key] of isUsed ? given : []) {
    if (url === undefined || reached.has(url.host)) continue;
    const walk = new Walk('egress proxy', surroundings);
    walks.push(walk);
    reached.set(url.host, walkTo(walk, proxyAt(url, key, egress.caFile), surroundings));
  }
  return {
    isReached: (proxy) => reached.get(proxy.url.host) ?? Promise.resolve(true),
    steps: Promise.all(reached.values()).then(() => walks.flatMap(({ steps }) => steps)),
  };
}

function proxyAt(url: URL, key: 'egress.proxy' | 'egress.httpProxy', caFile: string | undefined) {
  return destinationOf(url, {
    trust: url.protocol === 'https:' ? () => trustContext(caFile) : undefined,
    clientCertificate: 'none',
    names: {
      address: `${nameOf(key)} or HTTPS_PROXY`,
      ca: nameOf('egress.caFile'),
      certificate: 'none: proxies are shown no certificate',
      caFile,
    },
    timeoutMs: TIMEOUT_MS,
  });
}
