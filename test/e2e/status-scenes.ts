/** The situations in which people look at the status page, each played by real processes: a sidecar, an upstream, a token endpoint, callers. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { Environment, RunningSidecar } from '../support/sidecar-process.ts';

export const SCENE_NAMES = ['healthy', 'throttled', 'failing', 'refused', 'outage', 'wrong-path', 'idle'] as const;
export type SceneName = (typeof SCENE_NAMES)[number];

export interface Scene extends AsyncDisposable {
  readonly sidecar: RunningSidecar;
  /** Where the status page is. */
  readonly url: string;
}

/** What the page says first. */
export const HEADLINES: Readonly<Record<SceneName, RegExp>> = {
  healthy: /^Healthy$/,
  throttled: /^The rate limit of the partner is reached/,
  failing: /^No token: client authentication failed \(invalid_client\)$/,
  refused: /^The partner responds 503 to (?:2[6-9]|3[0-6]) % of the requests$/,
  outage: /^No token: the token endpoint is not available$/,
  'wrong-path': /^No token: the token endpoint does not exist at this address \(404\)$/,
  idle: /^Ready$/,
};

/** The first alert of deploy/prometheus whose condition holds in the scene. */
export const SCENE_ALERTS: Readonly<Partial<Record<SceneName, string>>> = {
  failing: 'BearerSidecarTokenMissing',
  refused: 'BearerSidecarRequestsFailing',
  outage: 'BearerSidecarTokenMissing',
  'wrong-path': 'BearerSidecarTokenMissing',
};

/** Requests per second that the upstream of the throttled scene accepts. */
const HIDDEN_LIMIT = 6;
const SCOPE =
  'urn:example.partners.sales.individual.travel.policies.write urn:example.partners.sales.individual.travel.quotesrequests.write';

interface Script {
  readonly callsPerSecond: number;
  readonly api: RespondTo;
  readonly token: RespondTo;
  /** A token URL with its path, as users paste it for `auth.url`. */
  readonly hasWholeTokenUrl?: boolean;
}

const giveToken: RespondTo = (_request, response, index) => {
  const token = {
    access_token: `token-${String(index)}-of-a-scene`,
    token_type: 'Bearer',
    expires_in: 3600,
    scope: SCOPE,
  };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
};

/** The first one expires soon, and there is no other. */
const giveOneShortToken: RespondTo = (_request, response, index) => {
  if (index > 0) {
    response.writeHead(503).end();
    return;
  }
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end('{"access_token":"short-lived-of-a-scene","token_type":"Bearer","expires_in":6}');
};

const giveTokenAtItsPath: RespondTo = (request, response, index) => {
  if (request.path === '/oauth/token') return giveToken(request, response, index);
  response.writeHead(404).end();
};

const refuseClient: RespondTo = (_request, response) => {
  response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}');
};

/** Quick most of the time, wrong or slow now and then, and never by chance. */
const respondNormally: RespondTo = async (_request, response, index) => {
  await sleep(12 + ((index * 37) % 50) + (index % 29 === 0 ? 180 : 0));
  response.writeHead(index % 61 === 60 ? 422 : 201, { 'content-type': 'application/json' }).end('{"id":"4711"}');
};

const refuseAThird: RespondTo = (request, response, index) => {
  if ((index * 31) % 100 >= 31) return respondNormally(request, response, index);
  response.writeHead(503).end();
};

function limited(): RespondTo {
  const accepted: number[] = [];
  return async (request, response, index) => {
    const now = performance.now();
    while (now - (accepted[0] ?? now) > 1000) accepted.shift();
    if (accepted.length >= HIDDEN_LIMIT) {
      response.writeHead(429).end();
      return;
    }
    accepted.push(now);
    await respondNormally(request, response, index);
  };
}

const SCRIPTS: Readonly<Record<SceneName, () => Script>> = {
  healthy: () => ({ callsPerSecond: 18, api: respondNormally, token: giveToken }),
  throttled: () => ({ callsPerSecond: 6.5, api: limited(), token: giveToken }),
  failing: () => ({ callsPerSecond: 3, api: respondNormally, token: refuseClient }),
  refused: () => ({ callsPerSecond: 10, api: refuseAThird, token: giveToken }),
  outage: () => ({ callsPerSecond: 3, api: respondNormally, token: giveOneShortToken }),
  'wrong-path': () => ({ callsPerSecond: 3, api: respondNormally, token: giveTokenAtItsPath, hasWholeTokenUrl: true }),
  idle: () => ({ callsPerSecond: 0, api: respondNormally, token: giveToken }),
};

/** Starts it, with callers that go on until it is disposed of. */
export async function startScene(name: SceneName, env: Environment = {}): Promise<Scene> {
  await using cleanup = new AsyncDisposableStack();
  const { callsPerSecond, api, token, hasWholeTokenUrl = false } = SCRIPTS[name]();
  const upstream = cleanup.use(await startRecordingUpstream(api));
  const tokens = cleanup.use(await startRecordingUpstream(token));
  const tokenUrl = hasWholeTokenUrl ? `${tokens.url}/oauth/token` : tokens.url;
  const own = { SIDECAR_SCOPE: SCOPE, SIDECAR_LOG_LEVEL: 'warn', ...env };
  const sidecar = cleanup.use(
    await startSidecar({
      name: `status-${name}`,
      env: { ...baseSettings(upstream.url, tokenUrl, newCredential()), ...own, SIDECAR_LOG_LEVEL: 'info' },
    }),
  );
  if (name !== 'failing' && name !== 'wrong-path') await waitUntilReady(sidecar);
  if (callsPerSecond > 0) cleanup.defer(callSteadily(sidecar.proxyUrl, callsPerSecond).stop);
  const all = cleanup.move();
  return { sidecar, url: `${sidecar.adminUrl}/`, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** One call after the other; failures are ignored. */
export function callSteadily(proxyUrl: string, perSecond: number): { readonly stop: () => Promise<void> } {
  const aborter = new AbortController();
  const pending = new Set<Promise<unknown>>();
  const call = async (): Promise<void> => {
    const body = '{"product":"travel"}';
    const response = await fetch(`${proxyUrl}/quotes`, { method: 'POST', body, signal: aborter.signal }).catch(
      () => undefined,
    );
    await response?.arrayBuffer().catch(() => undefined);
  };
  const timer = setInterval(() => {
    const made = call().finally(() => pending.delete(made));
    pending.add(made);
  }, 1000 / perSecond);
  return {
    stop: async () => {
      clearInterval(timer);
      aborter.abort();
      await Promise.all(pending);
    },
  };
}
