/**
 * One upstream, for all the routes that lead to it: the way there and nothing more, since nobody knows what a call does; or, when a
 * path is given to probe, one GET of it with the token.
 */
import type { RouteConfig } from '../../config/config.ts';
import { DEFAULT_NAME } from '../../config/schema/schema-routes.ts';
import type { Egress } from '../../platform/egress/egress.ts';
import { trustContext } from '../../platform/tls.ts';
import { exchangeOnce } from '../../token/endpoint/single-exchange.ts';
import { describeConnectFailure, describeExchangeFailure, timeoutFailure } from '../../upstream/failure.ts';
import { joinTarget } from '../../upstream/target.ts';
import { judgeSkew } from './clock-skew.ts';
import { judgeProbe } from './evaluate/judge-probe.ts';
import type { ProbeHead } from './evaluate/judge-probe.ts';
import type { Proxies } from './proxies.ts';
import { namesWithin, targetOf } from './setting-names.ts';
import { Walk } from './walk.ts';
import type { Finding, Step, Surroundings } from './walk.ts';
import { destinationOf, walkTo } from './way.ts';
import type { Destination } from './way.ts';

export interface UpstreamCheck extends Surroundings {
  readonly egress: Egress;
  readonly proxies: Proxies;
}

/** One GET through a route. */
export interface Probe {
  readonly route: RouteConfig;
  /** As an application would ask the sidecar for it; query included. */
  readonly path: string;
  readonly token: Promise<string | undefined>;
}

/** Routes of the same server, trust and certificate together: looking once is enough. */
export function groupByUpstream(routes: readonly RouteConfig[]): readonly (readonly RouteConfig[])[] {
  const groups = Map.groupBy(routes, ({ upstream: { baseUrl, caFile, clientCertificate } }) =>
    JSON.stringify([baseUrl.origin, caFile, clientCertificate]),
  );
  return [...groups.values()];
}

/** The route that takes a path: the one with the longest prefix, by whole segments. */
export function routeFor(routes: readonly RouteConfig[], path: string): RouteConfig | undefined {
  const [pathname = ''] = path.split('?', 1);
  const fitting = routes.filter(
    ({ pathPrefix }) => pathPrefix === '/' || pathname === pathPrefix || pathname.startsWith(`${pathPrefix}/`),
  );
  return fitting.toSorted((a, b) => b.pathPrefix.length - a.pathPrefix.length)[0];
}

/** @param routes at least one, all of one upstream */
export async function checkUpstream(
  routes: readonly RouteConfig[],
  probe: Probe | undefined,
  check: UpstreamCheck,
): Promise<readonly Step[]> {
  const [first] = routes;
  if (first === undefined) return [];
  const { baseUrl } = first.upstream;
  const names = routes.map(({ name }) => name);
  const walk = new Walk(targetOf('upstream', names.includes(DEFAULT_NAME) ? DEFAULT_NAME : names.join(',')), check);
  const proxy = check.egress(baseUrl);
  const detour = proxy && { proxy, isReached: check.proxies.isReached(proxy) };
  const isReached = await walkTo(walk, destinationTo(first), check, detour);
  if (probe === undefined || !routes.includes(probe.route)) {
    walk.skip(['clock'], 'nothing is asked of the upstream without --probe PATH');
    return walk.steps;
  }
  const token = await probe.token;
  if (!isReached || token === undefined) {
    walk.skip(['probe', 'clock'], isReached ? 'there is no token' : 'the upstream was not reached');
    return walk.steps;
  }
  const head = await walk.take('probe', () => send(probe, token, check));
  if (head === undefined) walk.skip(['clock'], 'no answer to look at');
  else walk.note('clock', judgeSkew({ ...head, date: head.field('date') }, false));
  return walk.steps;
}

function destinationTo({ name, upstream }: RouteConfig): Destination {
  const nameSetting = namesWithin('route', name);
  const { baseUrl, caFile, clientCertificate, connectTimeoutMs } = upstream;
  return destinationOf(baseUrl, {
    trust: baseUrl.protocol === 'https:' ? () => trustContext(caFile, clientCertificate) : undefined,
    clientCertificate: clientCertificate === undefined ? 'none' : 'offered',
    names: {
      address: nameSetting('upstream.baseUrl'),
      ca: nameSetting('upstream.caFile'),
      certificate: nameSetting('upstream.tlsCertificateFile'),
      caFile,
    },
    timeoutMs: connectTimeoutMs,
  });
}

interface DatedHead extends ProbeHead {
  readonly sentAt: number;
  readonly receivedAt: number;
}

async function send({ route, path }: Probe, token: string, check: UpstreamCheck): Promise<Finding<DatedHead>> {
  const { baseUrl, caFile, clientCertificate, requestTimeoutMs, connectTimeoutMs } = route.upstream;
  const local = route.stripPrefix && route.pathPrefix !== '/' ? path.slice(route.pathPrefix.length) : path;
  const joined = joinTarget(baseUrl.pathname, local.startsWith('/') ? local : `/${local}`);
  if (joined.kind === 'refused') return { outcome: 'fail', detail: joined.why, advice: 'give --probe another path' };
  const { clock, egress } = check;
  const late = new AbortController();
  const cancel = clock.after(requestTimeoutMs, () => late.abort());
  const sentAt = clock.wallNow();
  try {
    const exchange = {
      url: new URL(joined.path, baseUrl.origin),
      method: 'GET' as const,
      headers: { authorization: `Bearer ${token}`, accept: '*/*' },
      secureContext: baseUrl.protocol === 'https:' ? trustContext(caFile, clientCertificate) : undefined,
      egress,
      clock,
      timeoutMs: connectTimeoutMs,
      signal: AbortSignal.any([check.signal, late.signal]),
    };
    const head = await exchangeOnce(exchange, ({ statusCode, headers }) => {
      const field = (name: string): string | undefined => [headers[name] ?? []].flat().join(', ') || undefined;
      return Promise.resolve({ status: statusCode, field, sentAt, receivedAt: clock.wallNow() });
    });
    return { ...judgeProbe(head, namesOf(route), head.receivedAt), value: head };
  } catch (error) {
    if (check.signal.aborted) throw error;
    const { detail } = late.signal.aborted ? timeoutFailure(requestTimeoutMs) : describeBroken(error);
    return {
      outcome: 'fail',
      detail,
      advice: `ask whoever runs ${baseUrl.host} what it makes of GET ${baseUrl.pathname}`,
    };
  } finally {
    cancel();
  }
}

function describeBroken(error: unknown): { readonly detail: string } {
  const failure = describeExchangeFailure(error);
  return failure.kind === 'reset' ? describeConnectFailure(error) : failure;
}

function namesOf({ name, credential }: RouteConfig): Parameters<typeof judgeProbe>[1] {
  const [ofRoute, ofCredential] = [namesWithin('route', name), namesWithin('credential', credential)];
  return {
    address: ofRoute('upstream.baseUrl'),
    audience: ofCredential('auth.audience'),
    scope: ofCredential('auth.scope'),
  };
}
