/** Incidents as they happen: a partner, a token endpoint and clients beside a sidecar, all on real sockets, for some seconds. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createPlainServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Status } from '../../src/admin/status/status.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { formatProblems } from '../../src/config/load/problems.ts';
import { startSidecar } from '../../src/composition/sidecar.ts';
import type { Certificates } from '../support/certificates.ts';
import { closeServer, freePort } from '../support/loopback.ts';
import { createRecordingLog } from '../support/recorded-events.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';

export interface VerdictScene {
  readonly name: string;
  readonly where: Status['verdict']['where'];
  /** The headline begins with them. */
  readonly words: string;
  readonly api?: RespondTo;
  /** Half of the calls go to a second route with this API. Default: one route. */
  readonly stock?: RespondTo;
  /** Of the two routes. Default: each has its own limit. */
  readonly isLimitShared?: boolean;
  readonly token?: RespondTo;
  readonly env?: Readonly<Record<string, string>>;
  /** Until the first look. Default 8. */
  readonly seconds?: number;
  /** Default 10. */
  readonly perSecond?: number;
  /** When each client gives up. Default: it waits. */
  readonly timeoutMs?: number;
  readonly method?: string;
  readonly host?: string;
  readonly partner?: 'expired certificate' | 'silent TLS' | 'two routes, one closed';
  readonly isDraining?: boolean;
}

const giveToken: RespondTo = (_, response, index) => {
  const token = { access_token: `token-${String(index)}-of-a-scene`, token_type: 'Bearer', expires_in: 3600 };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
};
const json = { 'content-type': 'application/json' };
const respondWith =
  (status: number, headers: Readonly<Record<string, string>> = json, body = '{}'): RespondTo =>
  (_, response) =>
    void response.writeHead(status, headers).end(body);
const well = respondWith(200);
const refuse = respondWith(429);
/** By the number of the call: of ten calls the first `failing` fail. */
const some =
  (failing: number, fail: RespondTo, otherwise: RespondTo = well): RespondTo =>
  (incoming, response, index) =>
    (index % 10 < failing ? fail : otherwise)(incoming, response, index);
const cut: RespondTo = (_, response) => void response.destroy();
const silent: RespondTo = () => undefined;
const delayed =
  (ms: number): RespondTo =>
  async (incoming, response, index) => {
    await sleep(ms);
    await well(incoming, response, index);
  };
/** Refuses with 429 beyond so many calls in flight. */
const atMostInFlight = (most: number, ms: number): RespondTo => {
  let inFlight = 0;
  return async (incoming, response, index) => {
    const isRefused = inFlight >= most;
    if (!isRefused) inFlight++;
    await (isRefused ? refuse : delayed(ms))(incoming, response, index);
    if (!isRefused) inFlight--;
  };
};
/** What each call got, by the number of the call. */
const first =
  (count: number, early: RespondTo, later: RespondTo): RespondTo =>
  (incoming, response, index) =>
    (index < count ? early : later)(incoming, response, index);

const FIREWALL = respondWith(403, { 'content-type': 'text/html' }, '<html>blocked</html>');
const LOGIN_PAGE = respondWith(200, { 'content-type': 'text/html; charset=utf-8' }, '<html>log in</html>');
const SCOPE = respondWith(403, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="quotes.write"' }, '');
const CHALLENGE = respondWith(503, { 'content-type': 'text/html', 'cf-mitigated': 'challenge' }, '<html>');
const PROXY = 'http://127.0.0.1:1';

export const VERDICT_SCENES: readonly VerdictScene[] = [
  { name: 'slow without a 429', where: 'partner', words: 'The partner is slow', api: delayed(3000) },
  { name: 'hung', where: 'partner', words: 'The partner does not respond', api: silent },
  {
    name: 'hung, impatient clients',
    where: 'partner',
    words: 'The partner does not respond',
    api: silent,
    timeoutMs: 2000,
  },
  {
    ...{ name: '429 with Retry-After 20', where: 'limit', words: 'The rate limit of the partner is reached' },
    api: respondWith(429, { 'retry-after': '20' }),
  },
  {
    ...{ name: 'own rate too low, queue too short', where: 'setting', words: 'The configured rate is too low' },
    env: { SIDECAR_RATE: '2', SIDECAR_BURST: '1', SIDECAR_QUEUE_MAX: '5' },
  },
  {
    ...{ name: 'certificate expired', where: 'partner', words: 'The certificate of the partner has expired' },
    partner: 'expired certificate',
  },
  {
    ...{
      name: 'resets of every POST',
      where: 'unclear',
      words: 'Partner or network: connections break after the request',
    },
    ...{ method: 'POST', api: cut },
  },
  {
    ...{ name: 'one of two routes refuses', where: 'partner', words: 'The partner refuses connections (route stock)' },
    partner: 'two routes, one closed',
  },
  {
    ...{ name: 'one of two routes is limited, clients leave', where: 'limit' },
    ...{ words: 'The rate limit of the partner is reached', stock: refuse, timeoutMs: 2000 },
  },
  {
    ...{ name: 'one of two routes hangs, clients leave', where: 'partner' },
    ...{ words: 'The partner does not respond (route stock)', stock: silent, timeoutMs: 2000 },
  },
  {
    ...{ name: 'two routes share a rate that is too low', where: 'setting', words: 'The configured rate is too low' },
    ...{ stock: well, isLimitShared: true, timeoutMs: 2000, env: { SIDECAR_RATE: '2', SIDECAR_BURST: '1' } },
  },
  { name: 'HTML 403', where: 'network', words: 'A firewall or proxy refuses the calls', api: FIREWALL },
  {
    ...{ name: 'a login page for every call', where: 'network', words: 'Something in front of the partner responds' },
    api: first(1, well, LOGIN_PAGE),
  },
  {
    ...{ name: 'a redirect to a login for every call', where: 'network', words: 'Something in front of the partner' },
    api: first(1, well, respondWith(302, { location: 'https://login.sso.example/' }, '')),
  },
  {
    ...{ name: 'a site of web pages, with some JSON', where: 'none', words: 'Healthy' },
    api: first(1, LOGIN_PAGE, some(2, well, LOGIN_PAGE)),
  },
  { name: 'a proxy that asks for credentials', where: 'network', words: 'A firewall or proxy', api: respondWith(407) },
  { name: 'insufficient scope', where: 'token', words: 'The token lacks a scope', api: SCOPE },
  {
    ...{ name: 'burst of 422', where: 'application', words: 'The partner refuses requests of the application (422)' },
    ...{ method: 'POST', api: some(8, respondWith(422)) },
  },
  {
    ...{ name: 'clients leave', where: 'application', words: 'The clients leave before their turn', timeoutMs: 300 },
    env: { SIDECAR_RATE: '1', SIDECAR_BURST: '1' },
  },
  {
    ...{
      name: 'foreign Host',
      where: 'application',
      words: 'The sidecar refuses requests of the application (HOST_NOT_',
    },
    host: 'evil.example',
  },
  {
    ...{ name: 'egress proxy down', where: 'network', words: 'The egress proxy cannot be used' },
    env: { SIDECAR_BASE_URL: 'https://partner.test', SIDECAR_EGRESS_PROXY: PROXY },
  },
  {
    ...{ name: 'name does not resolve', where: 'network', words: 'The host name of the partner does not resolve' },
    env: { SIDECAR_BASE_URL: 'https://partner.invalid', SIDECAR_EGRESS_PROXY: 'none' },
  },
  {
    ...{ name: 'wrong secret', where: 'token', words: 'No token: client authentication failed (invalid_client)' },
    token: respondWith(401, json, '{"error":"invalid_client"}'),
  },
  {
    ...{ name: 'token outage', where: 'token', words: 'No token: the token endpoint is not available' },
    token: respondWith(503),
  },
  {
    name: 'drain',
    where: 'none',
    words: 'Shutting down',
    api: silent,
    isDraining: true,
    env: { SIDECAR_DRAIN_MS: '3000' },
  },
  {
    ...{ name: 'two causes', where: 'partner', words: 'The partner responds 500 to', method: 'POST' },
    api: some(5, respondWith(500), some(8, cut)),
  },
  {
    ...{ name: 'recovered', where: 'none', words: 'Recovered: The partner responds 500', seconds: 28, method: 'POST' },
    api: first(40, respondWith(500), well),
  },
  {
    name: 'one failure',
    where: 'none',
    words: 'Healthy',
    perSecond: 2,
    method: 'POST',
    api: first(1, respondWith(500), well),
  },
  { name: 'bare 503', where: 'partner', words: 'The partner responds 503 to', method: 'POST', api: respondWith(503) },
  {
    name: 'a challenge of a firewall',
    where: 'network',
    words: 'A firewall or proxy refuses the calls',
    api: CHALLENGE,
  },
  {
    // Each attempt to connect takes five seconds until it is given up.
    ...{ name: 'nothing opens', where: 'network', words: 'No connection to the partner opens', seconds: 16 },
    partner: 'silent TLS',
  },
  {
    ...{ name: 'slow and 429 together', where: 'limit', words: 'The rate limit of the partner is reached' },
    api: some(5, respondWith(429, { 'retry-after': '0' }), delayed(3000)),
  },
  {
    ...{ name: 'refused, clients leave', where: 'limit', words: 'The rate limit of the partner is reached' },
    ...{ api: refuse, timeoutMs: 2000 },
  },
  {
    ...{ name: 'own rate too low, clients leave', where: 'setting', words: 'The configured rate is too low' },
    ...{ env: { SIDECAR_RATE: '2', SIDECAR_BURST: '1' }, timeoutMs: 2000 },
  },
  {
    ...{ name: 'few calls in flight allowed', where: 'limit', words: 'The rate limit of the partner is reached' },
    api: atMostInFlight(2, 1500),
  },
  {
    ...{ name: 'few calls in flight configured', where: 'setting', words: 'Too few requests may be in flight' },
    ...{ env: { SIDECAR_MAX_IN_FLIGHT: '2' }, api: delayed(100), perSecond: 30 },
  },
  { name: '404 to all', where: 'setting', words: 'The partner responds 404 to every call', api: respondWith(404) },
];

/** What is true at one moment may be false at the next: a place in flight is free, the first seconds have left the window. */
const LAST_LOOK_SECONDS = 17;
const LOOK_INTERVAL_MS = 1300;

/**
 * Plays it; what the sidecar says at each look: one, and others until second 14 where there is time.
 * @param look called at the first look, for pictures of the page. Default: nothing
 */
export async function playVerdictScene(
  scene: VerdictScene,
  certificates: Certificates,
  look: (adminUrl: string) => Promise<void> = () => Promise.resolve(),
): Promise<readonly Status['verdict'][]> {
  await using cleanup = new AsyncDisposableStack();
  const api = cleanup.use(await startRecordingUpstream(scene.api ?? well));
  const tokens = cleanup.use(await startRecordingUpstream(scene.token ?? giveToken));
  const { id, secret } = newCredential();
  const folder = cleanup.adopt(mkdtempSync(join(tmpdir(), 'verdict-')), (path) => rmSync(path, { recursive: true }));
  const file = join(folder, 'config.json');
  writeFileSync(file, '{}');
  const loaded = loadConfig({
    file,
    env: {
      ...{ SIDECAR_BASE_URL: api.url, SIDECAR_AUTH_URL: tokens.url, SIDECAR_AUDIENCE: 'https://api.partner.example/' },
      ...{ SIDECAR_CLIENT_ID: id, SIDECAR_CLIENT_SECRET: secret },
      ...{ SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' },
      ...(await preparePartner(scene, api.url, certificates, file, cleanup)),
      ...scene.env,
    },
  });
  if (!loaded.ok) throw new Error(formatProblems(loaded.problems));
  const { config } = loaded;
  const shutdown = scene.isDraining === true ? config.shutdown : { drainMs: 0, delayMs: 0 };
  const sidecar = await startSidecar({
    ...{ config: { ...config, shutdown }, version: '0.0.0', log: createRecordingLog(), random: Math.random },
    source: { loaded, load: undefined },
  });
  cleanup.defer(() => sidecar.drain().then(() => undefined));
  const stop = callSteadily(sidecar.proxyUrl, scene);
  cleanup.defer(stop);
  const { seconds = 8, isDraining = false } = scene;
  await sleep(seconds * 1000);
  if (isDraining) void sidecar.drain();
  await look(sidecar.adminUrl);
  const verdicts = [await readVerdict(sidecar.adminUrl)];
  for (let at = seconds * 1000; !isDraining && at < LAST_LOOK_SECONDS * 1000; at += LOOK_INTERVAL_MS) {
    await sleep(LOOK_INTERVAL_MS);
    verdicts.push(await readVerdict(sidecar.adminUrl));
  }
  return verdicts;
}

async function readVerdict(adminUrl: string): Promise<Status['verdict']> {
  const response = await fetch(`${adminUrl}/status`);
  return ((await response.json()) as Status).verdict;
}

async function preparePartner(
  { partner, stock, isLimitShared = false }: VerdictScene,
  workingUrl: string,
  { key, cert, caFile }: Certificates,
  file: string,
  cleanup: AsyncDisposableStack,
): Promise<Readonly<Record<string, string>>> {
  if (partner === 'two routes, one closed' || stock !== undefined) {
    const stockUrl =
      stock === undefined
        ? `http://127.0.0.1:${String(await freePort())}`
        : cleanup.use(await startRecordingUpstream(stock)).url;
    const shared = isLimitShared ? { throttle: { group: 'all' } } : {};
    const routes = [
      { name: 'orders', pathPrefix: '/orders', baseUrl: workingUrl, ...shared },
      { name: 'stock', pathPrefix: '/stock', baseUrl: stockUrl, ...shared },
    ];
    writeFileSync(file, JSON.stringify({ routes }));
    return {};
  }
  if (partner === undefined) return {};
  if (partner === 'silent TLS') {
    const silent = createPlainServer((socket) => void socket.on('error', () => socket.destroy()));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    cleanup.defer(() => void silent.close());
    return { SIDECAR_BASE_URL: `https://127.0.0.1:${String((silent.address() as AddressInfo).port)}` };
  }
  const server = createTlsServer({ key, cert }, (_, response) => response.end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanup.defer(() => closeServer(server));
  return {
    SIDECAR_BASE_URL: `https://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    SIDECAR_CA_FILE: caFile,
  };
}

/** @returns stops the clients */
function callSteadily(url: string, { perSecond = 10, timeoutMs, method = 'GET', host, partner, stock }: VerdictScene) {
  const hasTwoRoutes = partner === 'two routes, one closed' || stock !== undefined;
  let count = 0;
  const timer = setInterval(() => {
    const path = hasTwoRoutes ? ['/orders/1', '/stock/1'][count++ % 2] : '/quotes';
    const call = request(`${url}${path ?? ''}`, { method, agent: false, headers: host === undefined ? {} : { host } });
    call.on('error', () => call.destroy()).on('response', (response) => response.resume());
    if (timeoutMs !== undefined) setTimeout(() => call.destroy(), timeoutMs).unref();
    call.end(method === 'POST' ? '{}' : undefined);
    calls.add(call.on('close', () => calls.delete(call)));
  }, 1000 / perSecond);
  const calls = new Set<ReturnType<typeof request>>();
  return () => {
    clearInterval(timer);
    for (const call of calls) call.destroy();
  };
}
