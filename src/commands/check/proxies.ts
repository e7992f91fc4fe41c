/** The egress proxies, each looked at once however many destinations are behind it. */
import type { Config } from '../../config/config.ts';
import { formatSettingName } from '../../config/load/problems.ts';
import type { ForwardProxy } from '../../platform/egress/proxy-selector.ts';
import { loadTlsContext } from '../../platform/tls.ts';
import { StepRunner } from './step-runner.ts';
import type { CheckStep, CheckContext } from './step-runner.ts';
import { createTarget, checkConnectivity } from './connectivity.ts';

export interface ProxyChecks {
  /** Whether it takes connections; for one that was not looked at, true. */
  isReached(proxy: ForwardProxy): Promise<boolean>;
  /** What was found, in the order of the settings. */
  readonly steps: Promise<readonly CheckStep[]>;
}

/** For one that is on this machine or in its network a second would do. */
const PROXY_TIMEOUT_MS = 5000;

/** @param isUsed whether a destination is behind one of them */
export function checkProxies(egress: Config['egress'], isUsed: boolean, surroundings: CheckContext): ProxyChecks {
  const reached = new Map<string, Promise<boolean>>();
  const walks: StepRunner[] = [];
  const given = [
    [egress.proxy, 'egress.proxy'],
    [egress.httpProxy, 'egress.httpProxy'],
  ] as const;
  for (const [url, key] of isUsed ? given : []) {
    if (url === undefined || reached.has(url.host)) continue;
    const walk = new StepRunner('egress proxy', surroundings);
    walks.push(walk);
    reached.set(url.host, checkConnectivity(walk, createProxyTarget(url, key, egress.caFile), surroundings));
  }
  return {
    isReached: (proxy) => reached.get(proxy.url.host) ?? Promise.resolve(true),
    steps: Promise.all(reached.values()).then(() => walks.flatMap(({ steps }) => steps)),
  };
}

function createProxyTarget(url: URL, key: 'egress.proxy' | 'egress.httpProxy', caFile: string | undefined) {
  return createTarget(url, {
    trust: url.protocol === 'https:' ? () => loadTlsContext(caFile) : undefined,
    clientCertificate: 'none',
    names: {
      address: `${formatSettingName(key)} or HTTPS_PROXY`,
      ca: formatSettingName('egress.caFile'),
      certificate: 'none: proxies are shown no certificate',
      caFile,
    },
    timeoutMs: PROXY_TIMEOUT_MS,
  });
}
