/** Checks one upstream for all its routes: the connection only, and with --probe also one GET with the token. */
import type { RouteConfig } from '../../config/config.ts';
import { DEFAULT_NAME } from '../../config/schema/schema-routes.ts';
import { readMadeAt } from '../../platform/origin-clock.ts';
import { loadTlsContext } from '../../platform/tls.ts';
import { sendSingleRequest } from '../../token/endpoint/single-request.ts';
import { classifyExchangeError, timeoutFailure } from '../../upstream/failure.ts';
import type { AddedHeaders } from '../../upstream/headers.ts';
import { joinTarget } from '../../upstream/request-target.ts';
import { evaluateSkew } from './clock-skew.ts';
import { evaluateProbe, type ProbeContext } from './evaluate/evaluate-probe.ts';
import { createSettingNamer, formatTarget, StepRunner, type StepResult, type CheckStep } from './step-runner.ts';
import { checkConnection, observeConnections } from './connection.ts';
import type { CheckedServer, ConnectionObserver, PartnerCheckContext } from './connection.ts';

export interface UpstreamProbe {
  readonly route: RouteConfig;
  readonly path: string;
  /** At the start of the path, which the upstream does not see. */
  readonly strippedLength: number;
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
  const server = describeServer(first);
  if (probe === undefined || !routes.includes(probe.route)) {
    const { baseUrl: url, connectTimeoutMs: timeoutMs, tlsGroups } = first.upstream;
    await checkConnection(runner, { ...server, url, timeoutMs, tlsGroups }, check);
    runner.skip(['clock'], 'the upstream is called only with --probe PATH');
    return runner.steps;
  }
  const token = await probe.token;
  if (token === undefined) {
    runner.skip(['probe', 'clock'], 'there is no token');
    return runner.steps;
  }
  const head = await runner.run('probe', () =>
    sendProbe(probe, token, check, observeConnections(runner, server, check)),
  );
  if (head === undefined) runner.skip(['clock'], 'there is no response');
  else runner.record('clock', evaluateSkew(head.skewMs, false, check.clock.wallNow()));
  return runner.steps;
}

function describeServer({ name, upstream: { caFile, clientCertificate } }: RouteConfig): CheckedServer {
  const nameSetting = createSettingNamer('route', name);
  const names = {
    address: nameSetting('upstream.baseUrl'),
    ca: nameSetting('upstream.caFile'),
    certificate: nameSetting('upstream.tlsCertificateFile'),
    groups: nameSetting('upstream.tlsGroups'),
    limit: nameSetting('upstream.connectTimeoutMs'),
  };
  return { names, caFile, clientCertificate };
}

async function sendProbe(
  probe: UpstreamProbe,
  token: string,
  check: PartnerCheckContext,
  observe: ConnectionObserver,
): Promise<StepResult<{ readonly skewMs: number | undefined }>> {
  const { baseUrl, requestTimeoutMs } = probe.route.upstream;
  const target = joinTarget(baseUrl.pathname, probe.path, probe.strippedLength);
  if (typeof target !== 'string')
    return { outcome: 'fail', detail: target.message, advice: 'give --probe another path' };
  const { clock, egress } = check;
  const timeout = AbortSignal.timeout(requestTimeoutMs);
  const connections: { wasReached: boolean } = { wasReached: true };
  try {
    const exchange = {
      ...buildProbeRequest(probe, token),
      url: new URL(probe.own.query?.addTo(target) ?? target, baseUrl.origin),
      egress,
      clock,
      signal: AbortSignal.any([check.signal, timeout]),
      onConnection: (...connection: Parameters<ConnectionObserver>): void => {
        connections.wasReached = !(connection[0] instanceof Error);
        observe(...connection);
      },
    };
    const head = await sendSingleRequest(exchange, ({ statusCode: status, headers }) => {
      const field = (name: string): string | undefined => [headers[name] ?? []].flat().join(', ') || undefined;
      const { skewMs } = readMadeAt(field('date'), field('age'), clock.wallNow());
      return Promise.resolve({ status, field, names: Object.keys(headers), skewMs });
    });
    return { ...evaluateProbe(head, describeProbe(probe), clock.wallNow()), value: head };
  } catch (error) {
    if (check.signal.aborted) throw error;
    if (!connections.wasReached) return { outcome: 'skip', detail: 'the upstream was not reached' };
    const failure = timeout.aborted ? timeoutFailure(requestTimeoutMs) : classifyExchangeError(error, false);
    const { detail, advice = `ask the operator of ${baseUrl.host} about GET ${baseUrl.pathname}` } = failure;
    return { outcome: 'fail', detail, advice };
  }
}

function buildProbeRequest({ route, own }: UpstreamProbe, token: string) {
  const { baseUrl, caFile, clientCertificate, tlsGroups, connectTimeoutMs } = route.upstream;
  const secureContext =
    baseUrl.protocol === 'https:' ? loadTlsContext(caFile, clientCertificate, tlsGroups) : undefined;
  const headers = [...own.filter(['Accept', '*/*']).headers, ...own.list(token)];
  return { method: 'GET' as const, headers, secureContext, timeoutMs: connectTimeoutMs };
}

function describeProbe({ route, path, isTokenFile }: UpstreamProbe): ProbeContext {
  const { name, credential } = route;
  const { baseUrl, hasTokenField } = route.upstream;
  const [ofRoute, ofCredential] = [createSettingNamer('route', name), createSettingNamer('credential', credential)];
  const keyFile = hasTokenField ? ofCredential('auth.tokenFile') : ofRoute('upstream.query');
  const base = baseUrl.pathname.replace(/\/$/, '');
  const [pathname = ''] = path.split('?', 1);
  return {
    ofRoute,
    ofCredential,
    tokenFile: isTokenFile ? keyFile : undefined,
    repeatedPath: base !== '' && `${pathname}/`.startsWith(`${base}/`) ? base : undefined,
  };
}
