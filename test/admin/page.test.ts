/** The status page as the admin port serves it: complete without a script, with a strict policy, compressed, and live by events. */
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { Sampler } from '../../src/admin/samples/sampler.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { start } from './admin-port.ts';
import { failing, limited, unpaced, validToken } from './states.ts';
import { eachSecondOf, pageOf, textOf } from './view.ts';

const NO_SERIES = { counters: new Map(), durations: new Map(), bounds: [], gauges: () => [] };
const GZIP = { 'Accept-Encoding': 'gzip, deflate, br' };

describe('the page', () => {
  it('loads files of this port only, enforced by its policy, and has no inline script or style', async () => {
    const { ask } = await start({ throttles: () => [limited], tokens: () => [{ ...validToken, ...failing }] });
    const { headers, body } = await ask('/');
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(headers['cache-control']).toBe('no-store');
    const policy = String(headers['content-security-policy']).split('; ');
    expect(policy).toEqual(expect.arrayContaining(["default-src 'none'", "script-src 'self'", "style-src 'self'"]));
    expect(policy.join()).not.toMatch(/unsafe|data:|\*|https?:/);
    expect(body).not.toMatch(/<style|<script>| style=| on[a-z]+=|https?:\/\//);
    const loaded = [...body.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? '');
    expect(loaded).toHaveLength(6);
    for (const path of loaded) expect((await ask(path)).status).toBe(200);
  });

  it('shows a failure and escapes texts from the upstream', async () => {
    const lastFailure = { outcome: 'unavailable', detail: 'connect refused <script>', wallAt: 0 } as const;
    const token = { ...validToken, ...failing, lastFailure };
    const { ask } = await start({ throttles: () => [limited], tokens: () => [token] });
    const { body } = await ask('/');
    expect(body).toContain('connect refused &#60;script&#62;');
    expect(body).toContain('retry-after: 2; x-ratelimit-remaining: not understood (8 characters)');
  });

  it.each([
    ['inferred', limited, '100 requests per 10 s (window, learned, high confidence), since 00:00:00 UTC'],
    ['none', unpaced, 'none detected'],
    [
      'not identified',
      { ...limited, learned: { rate: 6, kind: 'unknown', confidence: 'none' as const, since: 0 } },
      'detected, not identified yet',
    ],
    [
      'of concurrent requests',
      { ...limited, learned: { ...limited.learned!, windowMs: undefined } },
      '100 concurrent requests (window',
    ],
    [
      'a bucket',
      { ...limited, learned: { ...limited.learned!, windowMs: undefined, kind: 'bucket' } },
      'about 9.5 per second, burst 100 (bucket',
    ],
    ['configured', { ...limited, mode: 'static' as const, learned: undefined }, 'configured, not learned'],
  ])('shows the limit: %s', (_, throttle, line) => {
    expect(textOf(pageOf({ throttles: [throttle] }))).toContain(`Limit ${line}`);
  });

  it.each([
    ['one priority', unpaced, 'Queued 0 In flight'],
    ['several priorities', limited, 'Queued 12 (high 1, normal 2, low 9) In flight'],
  ])('shows the queue length, %s', (_, state, expected) => {
    expect(textOf(pageOf({ throttles: [state] }))).toContain(expected);
  });

  it('shows each declared limit, when it is used up and when it resets', () => {
    const now = Date.UTC(2026, 10, 1, 0, 30);
    const day = {
      name: 'day',
      calls: 10_000,
      per: '1d',
      used: 7412,
      reserve: 0,
      usedUpAt: now + 3_600_000,
      resetsAt: now + 43_200_000,
    };
    const limits = [day, { ...day, name: 'hour', used: 9500, reserve: 500, usedUpAt: now }];
    for (const count of [1, 3]) {
      const throttles = Array.from({ length: count }, (_, at) => ({ ...unpaced, route: `r${String(at)}`, limits }));
      const text = pageOf({ throttles }).replaceAll(/<[^>]+>/g, '');
      expect(text).toContain(
        '7,412 of 10,000 calls per 1d, used up in 1 h 0 min at the pace of the last hour, resets in 12 h 0 min',
      );
      expect(text).toContain('9,500 of 10,000 calls per 1d, 500 kept for priority high, resets in 12 h 0 min used up');
    }
    const last = { ...day, calls: 8000, usedUpAt: Infinity, resetsAt: Infinity };
    expect(pageOf({ throttles: [{ ...unpaced, limits: [last] }] })).toContain('<dd>7,412 of 8,000 calls per 1d</dd>');
  });

  it('shows many throttles as a table', () => {
    const throttles = ['a', 'b', 'c'].map((route) => ({ ...limited, route }));
    const page = pageOf({ throttles });
    expect(textOf(page)).toMatch(/Route Current rate Limit .* a 9\.5 per second .* c 9\.5 per second/);
    expect(page).toContain('tabindex="0"');
  });

  it('shows each of several routes with its own share, success, latency and last failure', () => {
    const orders = {
      route: 'orders',
      requests: 2400,
      share: 0.96,
      perSecond: 40,
      ok: 2400,
      clientErrors: 0,
      p50Ms: 40,
      p95Ms: 90,
    };
    const stock = { ...orders, route: 'stock', requests: 100, share: 0.04, perSecond: 1.7, ok: 20, clientErrors: 5 };
    const record = {
      route: 'stock',
      method: 'GET',
      path: '/x',
      code: 503,
      source: 'sidecar',
      localReply: 'QUEUE_FULL',
      durationMs: 5,
      queuedMs: 0,
      attempts: 0,
      requestBytes: 0,
      responseBytes: 0,
    } as const;
    const lastFailures = [{ wallAt: Date.UTC(2026, 10, 1), record }];
    const text = textOf(pageOf({ routes: [orders, stock], lastFailures }));
    expect(text).toContain('orders 40 96 % 100 % 0 40 ms 90 ms –');
    expect(text).toContain('stock 1.7 4 % 20 % 5 40 ms 90 ms 00:00:00 UTC : 503 QUEUE_FULL');
    expect(pageOf({ routes: [orders] })).not.toContain('Upstream p50');
  });

  it('shows the changed settings with their origin, and the defaults in a closed section', () => {
    const settings = [
      { key: 'auth.clientSecret', value: '********', origin: 'environment SIDECAR_CLIENT_SECRET' },
      { key: 'queue.max', value: '1000', origin: 'default' },
    ];
    const page = pageOf({}, { settings });
    expect(textOf(page)).toContain('auth.clientSecret ******** environment SIDECAR_CLIENT_SECRET 1 setting at default');
    expect(textOf(page.slice(page.indexOf('<details>')))).toContain('queue.max 1000');
    expect(pageOf()).not.toContain('Configuration');
  });
});

describe('the files of the page', () => {
  async function fileOf(ask: Awaited<ReturnType<typeof start>>['ask'], name: RegExp): Promise<string> {
    const found = name.exec((await ask('/')).body)?.[0];
    if (found === undefined) throw new Error(`the page loads no ${String(name)}`);
    return found;
  }

  it('are immutable, and 304 for a browser that has them', async () => {
    const { ask } = await start();
    const path = await fileOf(ask, /\/assets\/page-[\w-]{12}\.css/);
    const { headers } = await ask(path);
    expect(headers['cache-control']).toContain('immutable');
    const again = await ask(path, { 'If-None-Match': String(headers.etag) });
    expect([again.status, again.body]).toEqual([304, '']);
    expect((await ask(path, { 'If-None-Match': '"another"' })).status).toBe(200);
    expect((await ask('/assets/page-aaaaaaaaaaaa.css')).status).toBe(404);
  });

  it.each(['/', '/assets/uPlot'])(
    '%s is compressed for a client that accepts gzip, and plain for others',
    async (start_) => {
      const { ask } = await start({ clock: new ManualClock() });
      const path = start_ === '/' ? '/' : await fileOf(ask, /\/assets\/uPlot-[\w-]{12}\.js/);
      const plain = await ask(path);
      const compressed = await ask(path, GZIP);
      expect([plain.headers['content-encoding'], compressed.headers['content-encoding']]).toEqual([undefined, 'gzip']);
      expect([plain.headers.vary, compressed.headers.vary]).toEqual(['Accept-Encoding', 'Accept-Encoding']);
      expect(gunzipSync(compressed.bytes).equals(plain.bytes)).toBe(true);
      expect((await ask(path, { 'Accept-Encoding': 'br, gzip;q=0' })).headers['content-encoding']).toBeUndefined();
    },
  );
});

describe('the events', () => {
  async function openStream(options: Parameters<typeof start>[0] = {}) {
    const clock = new ManualClock(Date.UTC(2026, 10, 1));
    const sampler = options.sampler ?? new Sampler({ clock, source: NO_SERIES, runEverySecond: eachSecondOf(clock) });
    const token = () => ({
      ...validToken,
      validForMs: 1_234_567 - clock.now(),
      nextRequestInMs: 900_000 - clock.now(),
    });
    const { port, ask } = await start({ clock, sampler, tokens: () => [token()], ...options });
    const sent = request({ host: '127.0.0.1', port, path: '/events', agent: false });
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.setEncoding('utf8');
    let received = '';
    response.on('data', (text: string) => (received += text)).on('error', () => undefined);
    const event = async (name: string): Promise<Record<string, unknown>> => {
      const found = () => [...received.matchAll(new RegExp(`event: ${name}\ndata: (.*)\n\n`, 'g'))].at(-1)?.[1];
      await expect.poll(found).toBeDefined();
      const data = JSON.parse(found() ?? '') as Record<string, unknown>;
      received = '';
      return data;
    };
    return { clock, sampler, ask, response, sent, event };
  }

  it('begin with a snapshot, then send the changes each second', async () => {
    let state = unpaced;
    const { clock, sampler, response, event } = await openStream({ throttles: () => [state] });
    expect(response.headers).toMatchObject({ 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    const hello = await event('hello');
    expect(hello).toMatchObject({
      now: Date.UTC(2026, 10, 1),
      rows: [],
      verdict: { where: 'none', headline: 'Ready' },
    });
    expect(Object.keys(hello.fragments as object)).toEqual(
      expect.arrayContaining(['verdict', 'now', 'parts', 'events']),
    );

    sampler.start();
    await clock.advance(1000);
    const { row } = await event('tick');
    expect(row).toEqual([Date.UTC(2026, 10, 1) / 1000 + 1, 0, 0, 0, 0, 0, 0, null, null, null, 0, 0, 0]);
    await clock.advance(1000);
    expect((await event('tick')).fragments).toEqual({});
    state = { ...limited, pausedMs: 0 };
    await clock.advance(1000);
    const { fragments, verdict } = await event('tick');
    expect(Object.keys(fragments as object)).toEqual(expect.arrayContaining(['verdict', 'now', 'parts']));
    expect(verdict).toMatchObject({ where: 'limit', level: 'wait' });
  });

  it('are not rendered after the page has disconnected', async () => {
    let subscribers = 0;
    const clock = new ManualClock();
    class CountingSampler extends Sampler {
      override subscribe(listener: () => void) {
        subscribers++;
        const cancel = super.subscribe(listener);
        return () => {
          subscribers--;
          cancel();
        };
      }
    }
    const { sent, event } = await openStream({ clock, sampler: new CountingSampler({ clock, source: NO_SERIES }) });
    await event('hello');
    expect(subscribers).toBe(1);
    sent.on('error', () => undefined).destroy();
    await expect.poll(() => subscribers).toBe(0);
  });
});

it('the code of the page is not loaded before the first request for it', async () => {
  const { execFile } = await import('node:child_process');
  const { promisify } = await import('node:util');
  const script = `
    import { registerHooks } from 'node:module';
    const seen = [];
    registerHooks({ load: (url, context, next) => (seen.push(url), next(url, context)) });
    await import('./src/composition/sidecar.ts');
    console.log(JSON.stringify(seen.filter((url) => /admin|uplot/.test(url))));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  const seen = JSON.parse(stdout) as string[];
  expect(seen.some((url) => url.endsWith('/admin/samples/sampler.ts'))).toBe(true);
  expect(seen.filter((url) => /admin\/page\/|uplot/i.test(url))).toEqual([]);
});
