/**
 * The status page in a real Chromium in front of real sidecars: each situation light, dark and on a phone, with nothing to complain of
 * in the console, in the policy or for axe-core; what it weighs on the wire; a restart of the process behind it.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { networkInterfaces } from 'node:os';
import type { NodeResult, Result } from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startChromium } from '../support/chromium.ts';
import { freePort } from '../support/loopback.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { callSteadily, HEADLINES, SCENE_ALERTS, SCENE_NAMES, startScene } from './status-scenes.ts';
import type { Scene, SceneName } from './status-scenes.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Seconds pass between two events, and more on a busy machine. */
const MOST_BYTES = 100_000;
const LOOKS: Readonly<Record<string, BrowserContextOptions>> = {
  light: { colorScheme: 'light', viewport: { width: 1240, height: 900 } },
  tablet: { colorScheme: 'dark', viewport: { width: 768, height: 900 } },
  phone: { colorScheme: 'light', viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
};
const USUAL: BrowserContextOptions = {};

const cleanup = new AsyncDisposableStack();
const scenes = new Map<SceneName, Scene>();
/** One of each kind: a new page starts a process, which takes longer than a visit. */
const pages = new Map<BrowserContextOptions, Page>();
let browser: Browser;

beforeAll(async () => {
  browser = cleanup.use(await startChromium());
  for (const name of SCENE_NAMES) scenes.set(name, cleanup.use(await startScene(name)));
});

afterAll(async () => {
  await cleanup.disposeAsync();
});

interface Visit extends AsyncDisposable {
  readonly page: Page;
  /** What the console and the policy had to say. */
  readonly faults: string[];
  /** Every address that was asked for. */
  readonly requested: string[];
}

async function visit(url: string, options = USUAL): Promise<Visit> {
  // What is checked with is not held to the page's policy; the policy's own reports are recorded.
  const page = pages.get(options) ?? (await (await browser.newContext(options)).newPage());
  pages.set(options, page);
  const [faults, requested]: [string[], string[]] = [[], []];
  page.on('console', (message) => faults.push(message.text())).on('pageerror', (error) => faults.push(error.message));
  page.on('request', (request) => requested.push(request.url()));
  await page.goto(url);
  return { page, faults, requested, [Symbol.asyncDispose]: () => leave(page) };
}

async function leave(page: Page): Promise<void> {
  page.removeAllListeners();
  // Its stream of events ends.
  await page.goto('about:blank');
}

async function untilLive(page: Page): Promise<void> {
  await page.waitForSelector('#link:text-is("live")');
}

interface AccessibilityReport {
  readonly passed: readonly Result['id'][];
  /** Each with the elements that violate it. */
  readonly violations: readonly (readonly [Result['id'], readonly NodeResult['html'][]])[];
}

/** The whole result has every element of the page: what is not needed stays in the page. */
const RUN_AXE = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations, passes }) => ({
  passed: passes.map(({ id }) => id),
  violations: violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]),
}))`;

async function checkWithAxe(page: Page): Promise<AccessibilityReport> {
  return page.evaluate<AccessibilityReport>(`${AXE}; ${RUN_AXE}`);
}

describe.each(SCENE_NAMES)('%s', (name) => {
  it.each(Object.keys(LOOKS))(
    '%s: shows its state first, updates itself, and has no faults of accessibility',
    async (look) => {
      const { url } = scenes.get(name)!;
      await using seen = await visit(url, LOOKS[look]);
      const { page, faults, requested } = seen;
      await untilLive(page);
      // Calls take a moment to meet a limit.
      await expect.poll(() => page.textContent('#headline')).toMatch(HEADLINES[name]);
      await page.waitForSelector('.plot canvas');
      const { passed, violations } = await checkWithAxe(page);
      expect(passed).toEqual(expect.arrayContaining(['color-contrast', 'region', 'heading-order']));
      expect(violations).toEqual([]);
      const width = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
      // The figures change each second.
      await expect.poll(() => page.evaluate<number>(width)).toBe(0);
      expect((await page.textContent('#verdict')) ?? '').toContain(SCENE_ALERTS[name] ?? '');
      // A bad state never stands without what to do.
      expect(await page.locator('#verdict .bad .advice li').count()).toBeGreaterThanOrEqual(
        await page.locator('#verdict .bad').count(),
      );
      expect(faults).toEqual([]);
      expect(requested.filter((address) => !address.startsWith(url))).toEqual([]);
    },
  );
});

describe('the page of a sidecar that calls go through', () => {
  it('takes less than 100 kB on the wire, and only the page itself when it is loaded again', async () => {
    const { url } = scenes.get('healthy')!;
    // With a cache of its own.
    await using seen = await visit('about:blank', {});
    const session = await seen.page.context().newCDPSession(seen.page);
    const bytes = new Map<string, number>();
    const names = new Map<string, string>();
    await session.send('Network.enable');
    session.on('Network.requestWillBeSent', ({ requestId, request }) =>
      names.set(requestId, new URL(request.url).pathname),
    );
    session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) =>
      bytes.set(names.get(requestId) ?? '', encodedDataLength),
    );
    session.on('Network.dataReceived', ({ requestId, dataLength, encodedDataLength }) => {
      const path = names.get(requestId) ?? '';
      if (path === '/events') bytes.set(path, (bytes.get(path) ?? 0) + (encodedDataLength || dataLength));
    });
    await seen.page.goto(url);
    await untilLive(seen.page);
    await expect.poll(() => bytes.has('/events')).toBe(true);
    console.table([...bytes].map(([path, sent]) => ({ path, bytes: sent })));
    const total = [...bytes.values()].reduce((sum, sent) => sum + sent, 0);
    console.log(`status page: ${String(total)} bytes on the wire`);
    expect(total).toBeLessThan(MOST_BYTES);
    expect(bytes.size).toBeGreaterThanOrEqual(7);
    bytes.clear();
    await seen.page.goto(url);
    await untilLive(seen.page);
    const again = [...bytes].filter(([path, sent]) => path.startsWith('/assets/') && sent > 0);
    expect(again).toEqual([]);
  });

  it('counts down, and draws new values', async () => {
    await using seen = await visit(scenes.get('healthy')!.url);
    const { page } = seen;
    await untilLive(page);
    const left = () => page.textContent('#parts time[data-until]');
    const before = await left();
    await expect.poll(left).not.toBe(before);
    await expect.poll(() => page.textContent('[data-plot=requests] ~ .say')).toMatch(/^Success: [1-9]/);
    expect(await page.textContent('.legend li[data-colour=good] b')).toMatch(/^[1-9]/);
  });

  it('is complete without scripts', async () => {
    await using seen = await visit(scenes.get('healthy')!.url, { javaScriptEnabled: false });
    const { page } = seen;
    expect(await page.textContent('#headline')).toBe('Healthy');
    expect(await page.textContent('#link')).toContain('reload for newer ones');
    expect(await page.textContent('#codes')).toContain('201 ×');
    expect(await page.isVisible('.plot')).toBe(false);
    expect(await page.isVisible('.say')).toBe(true);
  });

  it('shows each status code in the colour of its class', async () => {
    await using seen = await visit(scenes.get('healthy')!.url);
    const { page } = seen;
    const badges = page.locator('#codes .badge.good');
    await badges.first().waitFor();
    const colours = await page.evaluate(
      `['#codes .badge.good', '.card h2 .badge.good'].map((one) => getComputedStyle(document.querySelector(one)).color)`,
    );
    const [ofCode, ofState] = colours as string[];
    expect(ofCode).toBe(ofState);
  });

  it('is traversed in order with the keyboard, with a visible focus', async () => {
    await using seen = await visit(scenes.get('healthy')!.url);
    const { page } = seen;
    await untilLive(page);
    const stops: string[] = [];
    for (let step = 0; step < 8; step++) {
      await page.keyboard.press('Tab');
      stops.push(
        await page.evaluate<string>(
          `document.activeElement.matches(':focus-visible') ? document.activeElement.textContent : ''`,
        ),
      );
    }
    expect(stops.slice(3, 7)).toEqual([expect.stringMatching(/at default$/), 'Status as JSON', 'Metrics', 'Readiness']);
    await page.focus('summary');
    await page.keyboard.press('Enter');
    expect(await page.isVisible('text=queue.timeoutMs')).toBe(true);
    const outline = `getComputedStyle(document.querySelector('summary')).outlineStyle`;
    expect(await page.evaluate<string>(outline)).toBe('solid');
  });

  it('filters the recent calls by status and text, with the keyboard alone', async () => {
    await using seen = await visit(scenes.get('refused')!.url);
    const { page, faults } = seen;
    await untilLive(page);
    const focused = () => page.evaluate<string>('document.activeElement.id');
    // The alerts come first; each can be opened.
    for (let tabs = 0; tabs < 8 && (await focused()) !== 'calls-class'; tabs++) await page.keyboard.press('Tab');
    expect(await focused()).toBe('calls-class');
    await page.keyboard.type('5xx');
    const statuses = async () => new Set(await page.locator('#calls tbody tr:visible .badge').allTextContents());
    await expect.poll(statuses).toEqual(new Set(['503']));
    // Updates keep the filter.
    const newest = () => page.textContent('#calls tbody tr:not([hidden]) time');
    const before = await newest();
    await expect.poll(newest).not.toBe(before);
    expect(await statuses()).toEqual(new Set(['503']));
    expect(await page.textContent('#aloud')).toMatch(/^\d+ of \d+ shown$/);
    await page.keyboard.press('Tab');
    await page.keyboard.type('no such path');
    await expect.poll(() => page.textContent('#calls-shown')).toMatch(/^0 of \d+ shown$/);
    expect(await page.locator('#calls tbody tr:visible').count()).toBe(0);
    await page.keyboard.press('Tab');
    expect(await page.evaluate<string>('document.activeElement.id')).toBe('calls');
    expect(faults).toEqual([]);
  });

  it('draws what is used of a learned limit, with the same as text', async () => {
    await using seen = await visit(scenes.get('throttled')!.url);
    const { page } = seen;
    await untilLive(page);
    await expect
      .poll(() => page.textContent('.usage figcaption'))
      .toMatch(/ of .*; the next one (?:may be sent|is sent)/);
    expect(await page.locator('.usage svg').boundingBox()).toMatchObject({ height: expect.any(Number) as number });
  });

  it('announces changes to screen readers, but not each second', async () => {
    await using seen = await visit(scenes.get('healthy')!.url);
    const { page } = seen;
    await untilLive(page);
    const live = `[...document.querySelectorAll('[role=status], [aria-live], [role=alert]')].map(({ id }) => id)`;
    const regions = await page.evaluate<string[]>(live);
    expect(regions).toEqual(['aloud']);
    const clock = () => page.textContent('header time');
    const before = await clock();
    await expect.poll(clock).not.toBe(before);
    expect(await page.textContent('#aloud')).toBe('');
  });
});

describe('a restart of the process behind an open page', () => {
  it('is shown, the page reconnects by itself, and the plots have a gap', async () => {
    await using stack = new AsyncDisposableStack();
    const upstream = stack.use(await startRecordingUpstream());
    const tokens = stack.use(
      await startRecordingUpstream((_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"access_token":"token-before-and-after","token_type":"Bearer","expires_in":3600}');
      }),
    );
    const port = String(await freePort());
    const env = {
      ...baseSettings(upstream.url, tokens.url, newCredential()),
      SIDECAR_ADMIN_LISTEN: `127.0.0.1:${port}`,
    };
    const start = async () => {
      const sidecar = stack.use(await startSidecar({ name: 'status-restart', env }));
      await waitUntilReady(sidecar);
      return sidecar;
    };
    const first = await start();
    const calls = callSteadily(first.proxyUrl, 10);
    await using seen = await visit(`http://127.0.0.1:${port}/`);
    const { page, faults } = seen;
    await untilLive(page);
    // What the first plot holds: the instants of its rows, and which of them are a gap.
    const plotted = () => page.evaluate<[number[], (number | null)[]]>(`uPlot.sync('all').plots[0].data.slice(0, 2)`);
    await expect.poll(async () => (await plotted())[0].length).toBeGreaterThanOrEqual(3);
    const [[begin]] = await plotted();
    await calls.stop();
    expect(faults).toEqual([]);
    // An open page does not hold the end up.
    const { code } = await first.stop('SIGTERM');
    expect(code).toBe(0);
    await page.waitForSelector('#link:text("connection lost since")');
    expect(await page.textContent('#aloud')).toMatch(/^Connection lost since .*; reconnecting\.$/);
    expect((await checkWithAxe(page)).violations).toEqual([]);

    await start();
    await untilLive(page);
    expect(await page.textContent('#aloud')).toBe('Connected again.');
    // The page still has what it saw before, then a gap, then what is new.
    await expect.poll(async () => (await plotted())[1].lastIndexOf(null)).toBeGreaterThan(0);
    await expect.poll(async () => (await plotted())[1].at(-1)).toBe(0);
    expect((await plotted())[0][0]).toBe(begin);
    expect(
      faults.filter((fault) => !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET/.test(fault)),
    ).toEqual([]);
  });
});

describe('from another machine', () => {
  const own = Object.values(networkInterfaces()).flat();
  const address = own.find((found) => found?.family === 'IPv4' && !found.internal)?.address;

  it.each([
    [false, [403, 403, 403, 200]],
    [true, [200, 200, 404, 200]],
  ])('page and events are refused unless admin.exposeAll: %s', async (exposeAll, expected) => {
    // An address of this machine that is not loopback is treated as another machine's.
    if (address === undefined) throw new Error('this machine has no address but loopback');
    await using stack = new AsyncDisposableStack();
    const upstream = stack.use(await startRecordingUpstream());
    const env = {
      ...baseSettings(upstream.url, upstream.url, newCredential()),
      SIDECAR_ADMIN_EXPOSE_ALL: String(exposeAll),
    };
    const sidecar = stack.use(
      await startSidecar({ name: 'status-exposed', env: { ...env, SIDECAR_ADMIN_LISTEN: '0.0.0.0:0' } }),
    );
    const base = `http://${address}:${new URL(sidecar.adminUrl).port}`;
    const paths = ['/', '/events', '/assets/page-aaaaaaaaaaaa.js', '/livez'];
    const statuses = await Promise.all(
      paths.map(async (path) => {
        const leave = new AbortController();
        const { status } = await fetch(base + path, { signal: leave.signal });
        leave.abort();
        return status;
      }),
    );
    expect(statuses).toEqual(expected);
  });
});
