/**
 * Pages in a real Chromium against the proxy port and the admin port: everything that a page can start is refused, and none of
 * it reaches the upstream. The browser's own protection of local networks is off: older ones have none.
 */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSidecarStack } from '../support/chain.ts';
import type { SidecarStack } from '../support/chain.ts';
import { startChromium } from '../support/chromium.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { startStatusTap } from '../support/status-tap.ts';
import type { StatusTap } from '../support/status-tap.ts';
import { ATTACKS, NAVIGATIONS, PAGE } from './web-page-attacks.ts';

/** What a page at the very name and port can do, once that name has been rebound. */
const REBOUND: Readonly<Record<string, string>> = {
  'fetch GET of its own origin': `fetch(url)`,
  'fetch POST of its own origin': `fetch(url, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })`,
  'XMLHttpRequest of its own origin': `const x = new XMLHttpRequest(); x.open('GET', url); x.send()`,
  'iframe of its own origin': `add('iframe', { src: url })`,
  'form POST to its own origin': `form(url, 'POST', 'text/plain')`,
  'script of its own origin': `add('script', { src: url })`,
  'WebSocket to its own host': `new WebSocket(url.replace('http', 'ws'))`,
  'EventSource of its own origin': `new EventSource(url)`,
  'sendBeacon to its own origin': `navigator.sendBeacon(url, '{}')`,
};

const NAMES = { 'evil.test': '127.0.0.1', 'rebound.test': '127.0.0.1' };

interface Row {
  readonly attempt: string;
  /** As seen on the wire; empty when nothing came. */
  readonly status: string;
  readonly upstream: number;
}

const cleanup = new AsyncDisposableStack();
let browser: Browser;
let chain: SidecarStack;
let ports: Readonly<Record<'proxy' | 'admin', StatusTap>>;
/** Where the attacker's page is served. */
let pageUrl = '';
let upgrades = 0;

beforeAll(async () => {
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', pageUrl);
    response.writeHead(307, { location: searchParams.get('to') ?? '/' }).end();
  });
  pageUrl = await listenOnLoopback(server);
  cleanup.defer(() => closeServer(server));
  const env = { SIDECAR_WEBSOCKET: 'true', SIDECAR_RATE: '1000', SIDECAR_BURST: '1000' };
  chain = cleanup.use(await startSidecarStack({ name: 'browser', env }));
  chain.upstream.server.on('upgrade', (_request, socket) => {
    upgrades++;
    socket.destroy();
  });
  const [proxy, admin] = await Promise.all([
    startStatusTap(chain.sidecar.proxyUrl),
    startStatusTap(chain.sidecar.adminUrl),
  ]);
  ports = { proxy: cleanup.use(proxy), admin: cleanup.use(admin) };
  browser = cleanup.use(await startChromium(NAMES));
});

afterAll(async () => {
  await cleanup.disposeAsync();
});

/** Makes each attempt on a path of its own. @returns the responses of the port */
async function tryAll(port: StatusTap, prefix: string, attempts: readonly Attempt[]): Promise<Row[]> {
  await using context = await browser.newContext();
  const withPaths = attempts.map((attempt, index) => ({ ...attempt, path: `/${prefix}/${index}` }));
  const pages = new Map<string, Promise<Page>>();
  for (const { name, script, from, target, path } of withPaths) {
    // What leaves the page must not take the others' requests with it.
    const key = name in NAVIGATIONS ? name : from;
    if (!pages.has(key)) pages.set(key, openPage(context, from));
    const url = JSON.stringify(target + path);
    const page = await pages.get(key)!;
    // What the page sees of its attempts does not matter.
    await page.evaluate(`void (async () => { const url = ${url}; ${script} })().catch(() => 0)`);
  }
  const giveUpAt = performance.now() + 30_000;
  while (withPaths.some(({ path }) => port.statuses(path).length === 0) && performance.now() < giveUpAt)
    await sleep(20);
  return withPaths.map(({ name, path }) => ({
    attempt: name,
    status: [...new Set(port.statuses(path))].join(),
    upstream: chain.upstream.requests.filter((request) => request.path.startsWith(path)).length,
  }));
}

interface Attempt {
  readonly name: string;
  readonly script: string;
  /** Address of the page that makes it. */
  readonly from: string;
  /** Base URL of what it is made against. */
  readonly target: string;
}

/** A page of the attacker. */
async function openPage(context: BrowserContext, address: string): Promise<Page> {
  const page = await context.newPage();
  await page.route(address, (route) => route.fulfill({ contentType: 'text/html', body: PAGE }));
  await page.goto(address);
  return page;
}

function expectAllRefused(rows: readonly Row[]): void {
  console.table(rows);
  expect(rows.filter(({ status }) => status !== '403')).toEqual([]);
  expect(chain.upstream.requests.length + upgrades).toBe(0);
}

describe.each(['proxy', 'admin'] as const)(
  'the %s port responds with 403 to attempts of web pages, and none reaches the upstream',
  (name) => {
    it.each([
      ['another site', 'evil.test'],
      ['another port of the same host', '127.0.0.1'],
    ])('from %s', async (_, host) => {
      const from = `${pageUrl.replace('127.0.0.1', host)}/`;
      const { url: target } = ports[name];
      const attempts = Object.entries({ ...ATTACKS, ...NAVIGATIONS }).map(([name, script]) => ({
        name,
        script,
        from,
        target,
      }));
      expectAllRefused(await tryAll(ports[name], host, attempts));
    });

    it('by a name that was rebound to it', async () => {
      const target = ports[name].url.replace('127.0.0.1', 'rebound.test');
      const from = `${target}/page-of-the-attacker`;
      const attempts = Object.entries({ ...REBOUND, ...NAVIGATIONS }).map(([name, script]) => ({
        name,
        script,
        from,
        target,
      }));
      expectAllRefused(await tryAll(ports[name], 'rebound', attempts));
    });
  },
);

describe('a page that SIDECAR_ALLOWED_ORIGINS names', () => {
  it('may send requests with its own header fields after a preflight and read the responses; another page may not', async () => {
    await using allowing = await startSidecarStack({
      name: 'browser-allowed',
      env: { SIDECAR_ALLOWED_ORIGINS: pageUrl },
      respond: (request, response) => {
        response
          .writeHead(201, { 'content-type': 'application/json' })
          .end(JSON.stringify({ got: String(request.body) }));
      },
    });
    const call = `fetch('${allowing.sidecar.proxyUrl}/quotes', {
      method: 'PUT', body: '{"a":1}', headers: { 'content-type': 'application/json', 'x-trace': '1' },
    }).then(async (response) => [response.status, await response.text()], (error) => error.name)`;
    await using context = await browser.newContext();
    const page = await openPage(context, `${pageUrl}/`);
    expect(await page.evaluate(call)).toEqual([201, '{"got":"{\\"a\\":1}"}']);
    expect(allowing.upstream.requests).toMatchObject([{ method: 'PUT', headers: { 'x-trace': '1' } }]);

    const other = await openPage(context, `${pageUrl.replace('127.0.0.1', 'evil.test')}/`);
    expect(await other.evaluate(call)).toBe('TypeError');
    expect(allowing.upstream.requests).toHaveLength(1);
  });
});

describe('a person at the browser', () => {
  it('may type the address of the proxy port', async () => {
    await using own = await startSidecarStack({ name: 'browser-typed' });
    await using context = await browser.newContext();
    const response = await (await context.newPage()).goto(`${own.sidecar.proxyUrl}/quotes`);
    expect(response?.status()).toBe(200);
    expect(own.upstream.requests.map(({ path }) => path)).toContain('/quotes');
  });

  it('gets the status page without an error in the console, and may follow its links', async () => {
    await using context = await browser.newContext();
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('console', (message) => faults.push(message.text())).on('pageerror', (error) => faults.push(error.message));
    await page.goto(`${chain.sidecar.adminUrl}/`);
    expect(await page.textContent('h1')).toMatch(/^bearer-sidecar /);
    expect(await page.textContent('#headline')).toMatch(/^(?:Ready$|The sidecar refuses requests of the application)/);
    expect(faults).toEqual([]);
    await page.click('text=status as JSON');
    expect(page.url()).toBe(`${chain.sidecar.adminUrl}/status`);
    expect(await page.textContent('body')).toContain('"draining":false');
  });
});
