/** Checks each egress proxy once. */
import type { Config } from '../../config/config.ts';
import { formatSettingName } from '../../config/load/problems.ts';
import type { EgressProxy } from '../../platform/egress/proxy-selector.ts';
import { StepRunner } from './step-runner.ts';
import type { CheckStep, CheckContext } from './step-runner.ts';
import { createTarget, checkConnectivity } from './connectivity.ts';

export interface ProxyChecks {
  /** Whether the proxy is reachable; true for one that was not checked. */
  isReached(proxy: EgressProxy): Promise<boolean>;
  /** The steps in the order of the settings. */
  readonly steps: Promise<readonly CheckStep[]>;
}

const PROXY_TIMEOUT_MS = 5000;

/** @param isUsed whether any destination has a proxy */
export function checkProxies(egress: Config['egress'], isUsed: boolean, context: CheckContext): ProxyChecks {
  const reached = new Map<string, Promise<boolean>>();
  const runners: StepRunner[] = [];
  const given = [
    [egress.proxy, 'egress.proxy'],
    [egress.httpProxy, 'egress.httpProxy'],
  ] as const;
  for (const [url, key] of isUsed ? given : []) {
    if (url === undefined || reached.has(url.host)) continue;
    const runner = new StepRunner('egress proxy', context);
    runners.push(runner);
    reached.set(url.host, checkConnectivity(runner, createProxyTarget(url, key, egress.caFile), context));
  }
  return {
    isReached: (proxy) => reached.get(proxy.url.host) ?? Promise.resolve(true),
    steps: Promise.all(reached.values()).then(() => runners.flatMap(({ steps }) => steps)),
  };
}

function createProxyTarget(url: URL, key: 'egress.proxy' | 'egress.httpProxy', caFile: string | undefined) {
  return createTarget(url, {
    names: {
      address: `${formatSettingName(key)} or HTTPS_PROXY`,
      ca: formatSettingName('egress.caFile'),
      certificate: 'none: proxies get no client certificate',
      caFile,
    },
    timeoutMs: PROXY_TIMEOUT_MS,
  });
}
