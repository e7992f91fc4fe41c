/** A sidecar process whose partner's calls are answered by something else: what the verdict says meanwhile, and how soon it ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Status } from '../../src/admin/status/status.ts';
import { call } from '../support/calls.ts';
import { startSidecarStack } from '../support/chain.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { waitUntil } from '../support/until.ts';

const sendJson: RespondTo = (_, response) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
const sendPage: RespondTo = (_, response) =>
  void response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>Log in</html>');
const sendRedirect: RespondTo = (_, response) =>
  void response.writeHead(302, { location: 'https://login.sso.example/' }).end();

const BETWEEN_CALLS_MS = 100;

async function start(name: string, respond: RespondTo) {
  let current = respond;
  const stack = await startSidecarStack({ name, respond: (...call) => current(...call) });
  const { proxyUrl, adminUrl } = stack.sidecar;
  const cleanup = new AsyncDisposableStack();
  cleanup.use(stack);
  let count = 0;
  const send = async (): Promise<void> => {
    await call(`${proxyUrl}/orders/${String(count++)}`);
  };
  const sent: Promise<void>[] = [];
  const timer = setInterval(() => sent.push(send()), BETWEEN_CALLS_MS);
  cleanup.defer(async () => {
    clearInterval(timer);
    await Promise.all(sent);
  });
  return {
    respondWith: (next: RespondTo): void => {
      current = next;
    },
    readStatus: async () => JSON.parse((await call(`${adminUrl}/status`)).text) as Status,
    readText: async (path: string) => (await call(`${adminUrl}${path}`, { headers: { accept: 'text/html' } })).text,
    [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
  };
}

it.each([
  ['a login page', sendPage, '200 with text/html instead of JSON'],
  ['a redirect to a login', sendRedirect, '302 to login.sso.example instead of JSON'],
])('%s instead of JSON: red within two minutes, and ended soon after JSON comes again', async (name, respond, seen) => {
  await using scene = await start(`foreign ${name}`.replaceAll(' ', '-'), sendJson);
  await sleep(4000);
  expect((await scene.readStatus()).verdict).toMatchObject({ level: 'good', where: 'none', headline: 'Healthy' });
  scene.respondWith(respond);
  await waitUntil(async () => (await scene.readStatus()).verdict.level === 'bad', 'a red verdict', 120_000);
  const { verdict } = await scene.readStatus();
  expect(verdict).toMatchObject({
    where: 'network',
    headline: 'Something in front of the partner responds in its place',
  });
  expect(verdict.detail).toMatch(
    new RegExp(`${seen} for (?:9\\d|100) % of the calls of route default\\. It worked until \\S+ UTC`),
  );
  expect(verdict.since).not.toBeNull();
  expect(verdict.advice).toContain('login page');
  expect(await scene.readText('/metrics')).toMatch(/bearer_sidecar_foreign_responses_total\{route="default"\} [1-9]/);
  scene.respondWith(sendJson);
  await waitUntil(async () => (await scene.readStatus()).verdict.level === 'good', 'the end');
});

it('an upstream that serves web pages and some JSON stays healthy, with all responses as successes', async () => {
  await using scene = await start('foreign-own-pages', (incoming, response, index) =>
    (index % 5 === 4 ? sendJson : sendPage)(incoming, response, index),
  );
  const end = performance.now() + 18_000;
  while (performance.now() < end) {
    const { verdict } = await scene.readStatus();
    expect({ level: verdict.level, where: verdict.where }).toEqual({ level: 'good', where: 'none' });
    await sleep(500);
  }
  expect(await scene.readText('/metrics')).toContain('bearer_sidecar_foreign_responses_total{route="default"} 0');
});
