/** `POST /quitquitquit` to the real process: the same end as SIGTERM, and no page in a real browser can cause it. */
import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { call, post, callConcurrently } from '../support/calls.ts';
import { startSidecarStack } from '../support/chain.ts';
import { startChromium } from '../support/chromium.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { waitUntilRefused } from '../support/raw-client.ts';
import { echo } from '../support/recording-upstream.ts';
import { waitUntil } from '../support/until.ts';
import { startStatusTap } from '../support/status-tap.ts';

const ALLOWED = { SIDECAR_ADMIN_ALLOW_QUIT: 'true', SIDECAR_RATE: '5000', SIDECAR_BURST: '500' };

it('finishes 20 requests in flight, refuses new ones, and exits with 0', async () => {
  let waiting = 0;
  const { promise: responding, resolve: respond } = Promise.withResolvers<undefined>();
  await using chain = await startSidecarStack({
    name: 'quit',
    env: ALLOWED,
    respond: async (...exchange) => {
      waiting++;
      await responding;
      await echo(...exchange);
    },
  });
  const { sidecar } = chain;
  const calls = callConcurrently(20, (index) => post(`${sidecar.proxyUrl}/slow`, { index }));
  await waitUntil(() => waiting === 20, 'all in flight');

  const quit = await call(`${sidecar.adminUrl}/quitquitquit`, { method: 'POST' });
  expect([quit.status, quit.text]).toEqual([200, '{"draining":true}\n']);
  expect((await call(`${sidecar.adminUrl}/readyz`)).status).toBe(503);
  // A second request is not the second signal, which would cut everything.
  expect((await call(`${sidecar.adminUrl}/quitquitquit`, { method: 'POST' })).status).toBe(200);
  await waitUntilRefused(sidecar.proxyUrl);

  respond(undefined);
  const responses = await calls;
  expect(responses.map(({ text }) => text)).toEqual(
    Array.from({ length: 20 }, (_, index) => JSON.stringify({ index })),
  );
  expect(await sidecar.exit).toEqual({ code: 0, signal: null });
  expect(sidecar.stdout()).toContain('asked to end by POST /quitquitquit');
});

it('responds when no request is in flight, and ignores a SIGTERM after it', async () => {
  await using chain = await startSidecarStack({ name: 'quit-idle', env: ALLOWED });
  const { sidecar } = chain;
  expect((await call(`${sidecar.adminUrl}/quitquitquit`, { method: 'POST' })).status).toBe(200);
  expect(await sidecar.stop('SIGTERM')).toEqual({ code: 0, signal: null });
});

it('is refused unless it is enabled', async () => {
  await using chain = await startSidecarStack({ name: 'quit-off' });
  const { sidecar } = chain;
  expect((await call(`${sidecar.adminUrl}/quitquitquit`, { method: 'POST' })).status).toBe(404);
  expect((await call(`${sidecar.adminUrl}/readyz`)).status).toBe(200);
});

const PAGE = `<!doctype html><body><script>
  const form = (url, enctype) => {
    const frame = Object.assign(document.createElement('iframe'), { name: enctype });
    const element = Object.assign(document.createElement('form'), { method: 'POST', enctype, action: url, target: enctype });
    document.body.append(frame, element);
    element.submit();
  };
  const attack = async (url) => {
    await fetch(url, { mode: 'no-cors', method: 'POST', body: 'x' }).catch(String);
    await fetch(url, { mode: 'no-cors', method: 'POST', referrerPolicy: 'no-referrer' }).catch(String);
    await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }).catch(String);
    navigator.sendBeacon(url, 'x');
    form(url, 'text/plain');
    form(url, 'application/x-www-form-urlencoded');
    const sandboxed = Object.assign(document.createElement('iframe'), { srcdoc:
      '<script>fetch("' + url + '", { mode: "no-cors", method: "POST" })</' + 'script>' });
    sandboxed.setAttribute('sandbox', 'allow-scripts');
    document.body.append(sandboxed);
  };
</script>`;

/** What `attack` sends at least: three calls of its own, a beacon, two forms, one from a sandboxed frame, less those that get a response there. */
const REQUESTS_OF_A_PAGE = 6;

it('is refused to pages of other sites, through a rebound name, and to the page of the port itself', async () => {
  await using chain = await startSidecarStack({ name: 'quit-browser', env: ALLOWED });
  const { adminUrl } = chain.sidecar;
  const site = createServer((_, response) => response.setHeader('content-type', 'text/html').end(PAGE));
  const siteUrl = await listenOnLoopback(site);
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => closeServer(site));
  const browser = await startChromium({ 'evil.test': '127.0.0.1', 'rebound.test': '127.0.0.1' });
  cleanup.defer(() => browser.close());
  const page = await browser.newPage();
  await using admin = await startStatusTap(adminUrl);
  const rebound = admin.url.replace('127.0.0.1', 'rebound.test');
  for (const [index, target] of [admin.url, rebound].entries()) {
    await page.goto(siteUrl.replace('127.0.0.1', 'evil.test'));
    await page.evaluate(`attack(${JSON.stringify(`${target}/quitquitquit`)})`);
    await waitUntil(
      () => admin.statuses('/quitquitquit').length >= (index + 1) * REQUESTS_OF_A_PAGE,
      `all of ${target}`,
    );
  }
  // From the port itself: the browser says that it is the same origin.
  await page.goto(`${admin.url}/livez`);
  const own = await page.evaluate(`fetch('/quitquitquit', { method: 'POST' }).then(({ status }) => status)`);

  expect(own).toBe(403);
  const statuses = admin.statuses('/quitquitquit');
  expect(statuses.length).toBeGreaterThan(2 * REQUESTS_OF_A_PAGE);
  expect(new Set(statuses)).toEqual(new Set(['403']));
  expect((await call(`${adminUrl}/readyz`)).status).toBe(200);
});
