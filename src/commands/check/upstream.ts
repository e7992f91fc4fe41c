/** Checks one upstream for all its routes: the connection only, and with --probe also one GET with the token. */
import type { RouteConfig } from '../../config/config.ts';
import { DEFAULT_NAME } from '../../config/schema/schema-routes.ts';
import { loadTlsContext } from '../../platform/tls.ts';
import { sendSingleRequest } from '../../token/endpoint/single-request.ts';
import { classifyConnectError, classifyExchangeError, timeoutFailure } from '../../upstream/failure.ts';
import type { AddedHeaders } from '../../upstream/headers.ts';
import { joinTarget } from '../../upstream/request-target.ts';
import { evaluateSkew, type DatedResponse } from './clock-skew.ts';
import { evaluateProbe, type ProbeResponseHead } from './evaluate/evaluate-probe.ts';
import { createSettingNamer, formatTarget, StepRunner, type StepResult, type CheckStep } from './step-runner.ts';
import { checkConnectivity, type PartnerCheckContext } from './connectivity.ts';

export interface UpstreamProbe {
  readonly route: RouteConfig;
  readonly path: string;
  readonly token: Promise<string | undefined>;
  readonly own: AddedHeaders;
  readonly isTokenFile: boolean;
}

/** Groups routes with the same server, trust and client certificate, so that each is checked once. */
export function groupByUpstream(routes: readonly RouteConfig[]): readonly (readonly RouteConfig[])[] {
  const groups = Map.groupBy(routes, ({ upstream: { baseUrl, caFile, clientCertificate } }) =>
    JSON.stringify([baseUrl.origin, caFile, clientCertificate]),
  );
  return [...groups.values()];
}

export function findRoute(routes: readonly RouteConfig[], path: string): RouteConfig | undefined {
  const [pathname = ''] = path.split('?', 1);
  const fitting = routes.filter(
    ({ pathPrefix }) => pathPrefix === '/' || pathname === pathPrefix || pathname.startsWith(`${pathPrefix}/`),
  );
  return fitting.toSorted((a, b) => b.pathPrefix.length - a.pathPrefix.length)[0];
}

/** @param routes at least one, all of the same upstream */
export async function checkUpstream(
  routes: readonly RouteConfig[],
  probe: UpstreamProbe | undefined,
  check: PartnerCheckContext,
): Promise<readonly CheckStep[]> {
  const [first] = routes;
  if (first === undefined) return [];
  const names = routes.map(({ name }) => name);
  const target = formatTarget('upstream', names.includes(DEFAULT_NAME) ? DEFAULT_NAME : names.join(','));
  const runner = new StepRunner(target, check);
  const isReached = await checkUpstreamConnectivity(runner, first, check);
  if (probe === undefined || !routes.includes(probe.route)) {
    runner.skip(['clock'], 'the upstream is called only with --probe PATH');
    return runner.steps;
  }
  const token = await probe.token;
  if (!isReached || token === undefined) {
    runner.skip(['probe', 'clock'], isReached ? 'there is no token' : 'the upstream was not reached');
    return runner.steps;
  }
  const head = await runner.run('probe', () => sendProbe(probe, token, check));
  if (head === undefined) runner.skip(['clock'], 'there is no response');
  else runner.record('clock', evaluateSkew({ ...head, date: head.field('date') }, false));
  return runner.steps;
}

function checkUpstreamConnectivity(runner: StepRunner, { name, upstream }: RouteConfig, check: PartnerCheckContext) {
  const nameSetting = createSettingNamer('route', name);
  const { baseUrl: url, caFile, clientCertificate, connectTimeoutMs: timeoutMs } = upstream;
  const names = {
    address: nameSetting('upstream.baseUrl'),
    ca: nameSetting('upstream.caFile'),
    certificate: nameSetting('upstream.tlsCertificateFile'),
    caFile,
  };
  return checkConnectivity(runner, { url, clientCertificate, names, timeoutMs }, check);
}

type DatedProbeResponse = ProbeResponseHead & Omit<DatedResponse, 'date'>;

async function sendProbe(
  probe: UpstreamProbe,
  token: string,
  check: PartnerCheckContext,
): Promise<StepResult<DatedProbeResponse>> {
  const { route, path, own } = probe;
  const { baseUrl, caFile, clientCertificate, tlsGroups, requestTimeoutMs, connectTimeoutMs } = route.upstream;
  const local = route.stripPrefix && route.pathPrefix !== '/' ? path.slice(route.pathPrefix.length) : path;
  const target = joinTarget(baseUrl.pathname, local.startsWith('/') ? local : `/${local}`);
  if (typeof target !== 'string')
    return { outcome: 'fail', detail: target.message, advice: 'give --probe another path' };
  const { clock, egress } = check;
  const timeout = AbortSignal.timeout(requestTimeoutMs);
  const sentAt = clock.wallNow();
  try {
    const exchange = {
      url: new URL(target, baseUrl.origin),
      method: 'GET' as const,
      headers: [...own.filter(['Accept', '*/*']).headers, ...own.list(token)],
      secureContext: baseUrl.protocol === 'https:' ? loadTlsContext(caFile, clientCertificate, tlsGroups) : undefined,
      egress,
      clock,
      timeoutMs: connectTimeoutMs,
      signal: AbortSignal.any([check.signal, timeout]),
    };
    const head = await sendSingleRequest(exchange, ({ statusCode, headers }) => {
      const field = (name: string): string | undefined => [headers[name] ?? []].flat().join(', ') || undefined;
      const names = Object.keys(headers);
      return Promise.resolve({ status: statusCode, field, names, sentAt, receivedAt: clock.wallNow() });
    });
    return { ...evaluateProbe(head, createProbeSettingNames(probe), head.receivedAt), value: head };
  } catch (error) {
    if (check.signal.aborted) throw error;
    const { detail } = timeout.aborted ? timeoutFailure(requestTimeoutMs) : describeExchangeError(error);
    const advice = `ask the operator of ${baseUrl.host} about GET ${baseUrl.pathname}`;
    return { outcome: 'fail', detail, advice };
  }
}

function describeExchangeError(error: unknown): { readonly detail: string } {
  const failure = classifyExchangeError(error);
  return failure.kind === 'reset' ? classifyConnectError(error) : failure;
}

function createProbeSettingNames({ route, path, isTokenFile }: UpstreamProbe): Parameters<typeof evaluateProbe>[1] {
  const { name, credential } = route;
  const { baseUrl } = route.upstream;
  const [ofRoute, ofCredential] = [createSettingNamer('route', name), createSettingNamer('credential', credential)];
  const base = baseUrl.pathname.replace(/\/$/, '');
  const [pathname = ''] = path.split('?', 1);
  return {
    address: ofRoute('upstream.baseUrl'),
    audience: ofCredential('auth.audience'),
    scope: ofCredential('auth.scope'),
    placement: `${ofRoute('upstream.tokenHeader')} and ${ofRoute('upstream.tokenPrefix')}`,
    tokenFile: isTokenFile ? ofCredential('auth.tokenFile') : undefined,
    repeatedPath: base !== '' && `${pathname}/`.startsWith(`${base}/`) ? base : undefined,
  };
}
