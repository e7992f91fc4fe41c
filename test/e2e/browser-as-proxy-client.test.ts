/**
 * A browser that uses the sidecar as its HTTP proxy, which must never be set up: what a page of another site can send to the partner. Chromium sends
 * `Sec-Fetch-Site` only to origins that it trusts (https, loopback), so that a request for `http://partner.test` has an `Origin`, a
 * `Referer`, or neither.
 */
import { createServer } from 'node:http';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PARTNER_HOST, partnerSettings } from '../peers/client-stacks/site.ts';
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

const POLICIES = ['strict-origin-when-cross-origin', 'no-referrer'] as const;
type Policy = (typeof POLICIES)[number];

/** An attacker's page on a site that the browser reaches without the proxy, a tapped sidecar, and a browser that uses it as its proxy. */
interface Scene extends AsyncDisposable {
  readonly upstream: RecordingUpstream;
  readonly tap: StatusTap;
  readonly browser: Browser;
  readonly attackerUrl: string;
}

async function startScene(name: string, forwardProxy: boolean): Promise<Scene> {
  await using cleanup = new AsyncDisposableStack();
  const attacker = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://evil.test');
    if (pathname === '/redirect') response.writeHead(307, { location: searchParams.get('to') ?? '/' }).end();
    else
      response
        .writeHead(200, { 'content-type': 'text/html', 'referrer-policy': pathname.slice(1) || 'no-referrer' })
        .end(PAGE);
  });
  const attackerUrl = (await listenOnLoopback(attacker)).replace('127.0.0.1', 'evil.test');
  cleanup.defer(() => closeServer(attacker));
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
  const browser = cleanup.use(
    await startChromium({ 'evil.test': '127.0.0.1' }, [
      `--proxy-server=${tap.url}`,
      // Otherwise no request for this machine would use the proxy.
      '--proxy-bypass-list=<-loopback>;evil.test',
    ]),
  );
  const all = cleanup.move();
  return { upstream, tap, browser, attackerUrl, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Makes each attempt on a path of its own. @returns the names of those that reached the API */
async function attack({ upstream, tap, browser, attackerUrl }: Scene, policy: Policy, base: string): Promise<string[]> {
  await using context = await browser.newContext();
  const attempts = Object.entries(SCRIPTS).map(([name, script], index) => ({
    name,
    script,
    url: `${base}/${policy}/${String(index)}`,
  }));
  const page = await openPage(context, `${attackerUrl}/${policy}`);
  for (const { name, script, url } of attempts) {
    // What leaves the page must not take the others' requests with it.
    const from = name in NAVIGATIONS ? await openPage(context, `${attackerUrl}/${policy}`) : page;
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

const WITHOUT_REFERRER: readonly string[] = [];
const PARTNER = `http://${PARTNER_HOST}/sales/v1`;

describe('with the default settings', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene('browser-proxy-default', false);
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each(POLICIES)('no attempt against the partner reaches the API (Referrer-Policy: %s)', async (policy) => {
    expect(await attack(scene, policy, PARTNER)).toEqual([]);
    expect(scene.upstream.requests).toEqual([]);
  });

  it.each(POLICIES)('no attempt against the own address reaches the API (Referrer-Policy: %s)', async (policy) => {
    expect(await attack(scene, policy, scene.tap.url)).toEqual([]);
    expect(scene.upstream.requests).toEqual([]);
  });
});

describe('with listen.forwardProxy', () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene('browser-proxy-allowed', true);
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  it.each([
    ['strict-origin-when-cross-origin', WITHOUT_REFERRER],
    ['no-referrer', []],
  ] as const)('these reach the API, as docs/security.md says (Referrer-Policy: %s)', async (policy, expected) => {
    const reached = await attack(scene, policy, PARTNER);
    console.log(`${policy}: ${reached.join(', ')}`);
    expect(reached).toEqual(expected);
    expect(scene.upstream.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});
