/**
 * A browser that uses the sidecar as its HTTP proxy, which must never be set up: what a page of another site can send to the partner. Chromium sends
 * `Sec-Fetch-Site` only to origins that it trusts (https, loopback), so that a request for `http://partner.test` has an `Origin`, a
 * `Referer`, or neither.
 */
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PARTNER_HOST, partnerSettings } from '../peers/client-stacks/site.ts';
import { makeCertificates } from '../support/certificates.ts';
import { startChromium } from '../support/chromium.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RecordingUpstream } from '../support/recording-upstream.ts';
import { startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startStatusTap } from '../support/status-tap.ts';
import type { StatusTap } from '../support/status-tap.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';
import { ATTACKS, NAVIGATIONS, PAGE } from './web-page-attacks.ts';

const SCRIPTS = { ...ATTACKS, ...NAVIGATIONS };
/** Through a proxy Chromium opens a tunnel for it: CONNECT, which is a 405. */
const TUNNELLED = new Set(['WebSocket']);
const WAIT_MS = 30_000;

/** What Chromium lets a page on https send to an http: URL: mixed content and forms are blocked. */
const FROM_HTTPS = [
  ...Object.keys(NAVIGATIONS).filter((name) => !name.startsWith('form')),
  'window.open',
  'window.open without opener',
  'window.open by way of a redirect',
];

/** The attacker's page: its scheme, its Referrer-Policy (the first one is the default), what it can try, and what of it
 * reaches the API with listen.forwardProxy: GET requests that have neither an Origin nor a Referer. docs/security.md names them. */
const PAGES = [
  {
    scheme: 'http',
    policy: 'strict-origin-when-cross-origin',
    attempts: Object.keys(SCRIPTS),
    reaching: ['fetch no-cors GET without referrer', 'window.open without opener', 'a link without referrer, clicked'],
  },
  {
    scheme: 'http',
    policy: 'no-referrer',
    attempts: Object.keys(SCRIPTS),
    reaching: [
      'fetch no-cors GET',
      'fetch no-cors GET without referrer',
      'img',
      'script',
      'link stylesheet',
      'link preload',
      'link prefetch',
      'video',
      'object',
      'iframe',
      'iframe, sandboxed',
      'img by way of a redirect',
      'window.open by way of a redirect',
      'window.open',
      'window.open without opener',
      'a link, clicked',
      'a link without referrer, clicked',
      'location',
      'meta refresh',
    ],
  },
  // No Referer is sent from https to http.
  { scheme: 'https', policy: 'strict-origin-when-cross-origin', attempts: FROM_HTTPS, reaching: FROM_HTTPS },
] as const;
type AttackerPage = (typeof PAGES)[number];

/** An attacker's page on a site that the browser reaches without the proxy, and a tapped sidecar. */
interface Scene extends AsyncDisposable {
  readonly upstream: RecordingUpstream;
  readonly tap: StatusTap;
  readonly attackerUrls: Readonly<Record<AttackerPage['scheme'], string>>;
}

let browser: Browser;
beforeAll(async () => {
  browser = await startChromium({ 'evil.test': '127.0.0.1' });
});
afterAll(() => browser.close());

async function startScene(name: string, forwardProxy: boolean): Promise<Scene> {
  await using cleanup = new AsyncDisposableStack();
  const certificates = cleanup.use(makeCertificates({ names: 'DNS:evil.test' }));
  const respond: RequestListener = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://evil.test');
    if (pathname === '/redirect') response.writeHead(307, { location: searchParams.get('to') ?? '/' }).end();
    else
      response
        .writeHead(200, { 'content-type': 'text/html', 'referrer-policy': pathname.slice(1) || 'no-referrer' })
        .end(PAGE);
  };
  const attackerUrls = { http: '', https: '' };
  for (const [scheme, server] of [
    ['http', createServer(respond)],
    ['https', createTlsServer({ key: certificates.key, cert: certificates.cert }, respond)],
  ] as const) {
    const { port } = new URL(await listenOnLoopback(server));
    cleanup.defer(() => closeServer(server));
    attackerUrls[scheme] = `${scheme}://evil.test:${port}`;
  }
  const upstream = cleanup.use(await startRecordingUpstream());
  const tokens = cleanup.use(await startTokenServer());
  const env = {
    ...partnerSettings(upstream, tokens.url),
    SIDECAR_LISTEN_FORWARD_PROXY: String(forwardProxy),
    SIDECAR_WEBSOCKET: 'true',
    SIDECAR_RATE: '1000',
    SIDECAR_BURST: '1000',
  };
  const sidecar = cleanup.use(await startSidecar({ name, env }));
  await waitUntilReady(sidecar);
  const tap = cleanup.use(await startStatusTap(sidecar.proxyUrl));
  const all = cleanup.move();
  return { upstream, tap, attackerUrls, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Makes each attempt on a path of its own. @returns the names of those that reached the API */
async function attack(
  scene: Scene,
  { scheme, policy, attempts: names }: AttackerPage,
  base: string,
): Promise<string[]> {
  const { upstream, tap, attackerUrls } = scene;
  // Without <-loopback> no request for this machine would use the proxy.
  const proxy = { server: tap.url, bypass: '<-loopback>,evil.test' };
  await using context = await browser.newContext({ proxy, ignoreHTTPSErrors: true });
  const attempts = names.map((name, index) => ({
    name,
    script: SCRIPTS[name] ?? '',
    url: `${base}/${scheme}-${policy}/${String(index)}`,
  }));
  const address = `${attackerUrls[scheme]}/${policy}`;
  const page = await openPage(context, address);
  for (const { name, script, url } of attempts) {
    // What leaves the page must not take the others' requests with it.
    const from = name in NAVIGATIONS ? await openPage(context, address) : page;
    // What the page sees of its attempts does not matter.
    await from.evaluate(`void (async () => { const url = ${JSON.stringify(url)}; ${script} })().catch(() => 0)`);
  }
  const sent = attempts.filter(({ name }) => !TUNNELLED.has(name));
  const isMissing = ({ url }: { url: string }): boolean => tap.statuses(url).length === 0;
  await waitUntil(() => !sent.some(isMissing), 'every attempt got a response of the sidecar', WAIT_MS).catch(() => {
    throw new Error(
      `these did not reach the sidecar: ${sent
        .filter(isMissing)
        .map(({ name }) => name)
        .join(', ')}`,
    );
  });
  const isReached = ({ url }: { url: string }): boolean =>
    upstream.requests.some(({ path }) => path.endsWith(new URL(url).pathname.replace(/^\/sales\/v1/, '')));
  return attempts.filter(isReached).map(({ name }) => name);
}

async function openPage(context: BrowserContext, address: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(address);
  return page;
}

const PARTNER = `http://${PARTNER_HOST}/sales/v1`;
const titled = (pages: readonly AttackerPage[]): (readonly [string, AttackerPage])[] =>
  pages.map((page) => [`${page.scheme}, Referrer-Policy ${page.policy}`, page]);

describe('with the default settings', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene('browser-proxy-default', false);
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each(titled(PAGES))('no attempt against the partner reaches the API (%s)', async (_, page) => {
    expect(await attack(scene, page, PARTNER)).toEqual([]);
    expect(scene.upstream.requests).toEqual([]);
  });

  it.each(titled(PAGES.filter(({ policy }) => policy === 'no-referrer')))(
    'no attempt against the own address reaches the API (%s)',
    async (_, page) => {
      expect(await attack(scene, page, scene.tap.url)).toEqual([]);
      expect(scene.upstream.requests).toEqual([]);
    },
  );
});

describe('with listen.forwardProxy', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene('browser-proxy-allowed', true);
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each(titled(PAGES))('only what docs/security.md names reaches the API (%s)', async (_, page) => {
    const reached = await attack(scene, page, PARTNER);
    expect(reached).toEqual(page.reaching);
    expect(scene.upstream.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});
