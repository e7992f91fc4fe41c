/** A sidecar whose token another program writes into a file: rotation under load, and a file that comes late. Time is real. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { RespondTo } from '../support/recording-upstream.ts';
import { registerSecret } from '../support/secrets.ts';
import type { Verdict } from '../../src/admin/verdict/verdict.ts';
import { startInProcess, until } from './in-process.ts';
import type { InProcess } from './in-process.ts';

const CALL_INTERVAL_MS = 20;
/** More than the replay buffer: it cannot be repeated. */
const LARGE = randomBytes(1.5 * 1024 * 1024);

function newToken(): string {
  const token = `key-${randomBytes(12).toString('hex')}`;
  registerSecret('a token in a file', token);
  return token;
}

function tokenPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'token-file-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'token');
}

function rename(path: string, token: string): void {
  writeFileSync(`${path}.new`, `${token}\n`);
  renameSync(`${path}.new`, path);
}

/** No authorization server, client id or secret is configured. */
function startStatic(path: string, respond: RespondTo, more: Record<string, string> = {}): Promise<InProcess> {
  const none = { SIDECAR_AUTH_URL: '', SIDECAR_CLIENT_ID: '', SIDECAR_CLIENT_SECRET: '', SIDECAR_AUDIENCE: '' };
  const env = { ...none, SIDECAR_AUTH_METHOD: 'static', SIDECAR_AUTH_TOKEN_FILE: path, ...more };
  return startInProcess({ env, respond, keepsEvents: false });
}

/** 401 for every other token. */
function acceptOnly(accepted: ReadonlySet<string>): RespondTo {
  return ({ headers }, response) => {
    const token = headers.authorization?.replace(/^Bearer /, '') ?? '';
    response.writeHead(accepted.has(token) ? 200 : 401).end();
  };
}

interface Statuses {
  readonly small: number[];
  readonly large: number[];
}

/**
 * Up to 50 calls a second while the work goes on, and 60 at least; every tenth is a large PUT.
 * @param work gets a function that waits for the calls that have begun
 */
async function callDuring(url: string, work: (callsEnd: () => Promise<unknown>) => Promise<void>): Promise<Statuses> {
  const statuses: Statuses = { small: [], large: [] };
  const calls: Promise<unknown>[] = [];
  const over = new AbortController();
  const done = work(() => Promise.all(calls)).finally(() => over.abort());
  for (let count = 0; !over.signal.aborted || count < 60; count++) {
    // A busy machine makes fewer calls: to make up for them would keep it busy.
    await sleep(CALL_INTERVAL_MS);
    const isLarge = count % 10 === 9;
    const list = isLarge ? statuses.large : statuses.small;
    const init = isLarge ? { method: 'PUT', body: LARGE } : count % 2 === 0 ? { method: 'POST', body: '{}' } : {};
    calls.push(fetch(`${url}/policies`, init).then((response) => list.push(response.status)));
  }
  await Promise.all([...calls, done]);
  return statuses;
}

const others = (statuses: readonly number[]): number[] => statuses.filter((status) => status !== 200);

it('no call fails when the token changes and the upstream accepts both for 2.5 s', async () => {
  const [path, first, second] = [tokenPath(), newToken(), newToken()];
  const accepted = new Set([first, second]);
  rename(path, first);
  const { url, api } = await startStatic(path, acceptOnly(accepted));
  const statuses = await callDuring(url, async (callsEnd) => {
    await sleep(200);
    rename(path, second);
    await sleep(2_500);
    // A busy machine reads the file later, and its calls last longer.
    await until(() => api.requests.some(({ headers }) => headers.authorization === `Bearer ${second}`), 'its use');
    await callsEnd();
    accepted.delete(first);
    await sleep(300);
  });
  expect(statuses.small.length).toBeGreaterThan(50);
  expect(statuses.large.length).toBeGreaterThan(5);
  expect(others([...statuses.small, ...statuses.large])).toEqual([]);
  expect(api.requests.at(-1)?.headers.authorization).toBe(`Bearer ${second}`);
});

it('no call that can be repeated fails when the upstream accepts only the newest token at once', async () => {
  const path = tokenPath();
  const accepted = new Set<string>();
  let newest = '';
  const replace = (write: (path: string, token: string) => void): void => {
    newest = newToken();
    write(path, newest);
    accepted.clear();
    accepted.add(newest);
  };
  replace(rename);
  const { url, api, metric } = await startStatic(path, acceptOnly(accepted));
  const rotations = 8;
  const statuses = await callDuring(url, async (callsEnd) => {
    for (let rotation = 0; rotation < rotations; rotation++) {
      await sleep(150);
      // A call is repeated once: it must not meet two rotations.
      await until(() => api.requests.some(({ headers }) => headers.authorization === `Bearer ${newest}`), 'its use');
      await callsEnd();
      if (rotation % 2 === 0) replace(rename);
      else {
        writeFileSync(path, '');
        await sleep(50);
        replace(writeFileSync);
      }
    }
    await sleep(100);
  });
  expect(statuses.small.length).toBeGreaterThan(40);
  expect(others(statuses.small)).toEqual([]);
  // The first call after a rotation finds the new token; a large one cannot be repeated.
  expect(others(statuses.large).length).toBeLessThanOrEqual(rotations);
  expect(await metric('bearer_sidecar_token_requests_total{credential="default",outcome="ok"}')).toBe(rotations + 1);
  expect(await metric('bearer_sidecar_token_invalidations_total{credential="default",reason="unauthorized"}')).toBe(0);
});

it('is not ready until the file has a token, and is then, without a restart', async () => {
  const [path, token] = [tokenPath(), newToken()];
  const { url, sidecar, tokens, metric } = await startStatic(path, acceptOnly(new Set([token])));
  const readiness = async () => (await fetch(`${sidecar.adminUrl}/readyz`)).status;
  expect(await readiness()).toBe(503);
  const reply = await fetch(`${url}/policies`);
  expect(reply.status).toBe(503);
  expect(await reply.json()).toMatchObject({
    code: 'TOKEN_UNAVAILABLE',
    detail: `No access token: auth.tokenFile: the file ${path} does not exist`,
  });
  rename(path, token);
  await until(async () => (await readiness()) === 200, 'ready');
  expect((await fetch(`${url}/policies`)).status).toBe(200);
  const metrics = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
  expect(metrics).not.toMatch(/^bearer_sidecar_token_(?:expiry_timestamp_seconds|endpoint_failures)\{/m);
  expect(await metric('bearer_sidecar_token_requests_total{credential="default",outcome="unavailable"}')).toBe(1);
  const status = await (await fetch(`${sidecar.adminUrl}/status`)).text();
  const page = await (await fetch(sidecar.adminUrl)).text();
  expect(JSON.parse(status)).toMatchObject({
    token: { file: path, status: 'valid', expiresAt: null, validForSeconds: null, nextRequestInSeconds: null },
    alerts: [],
    verdict: { level: 'good' },
  });
  expect(page).toContain('no expiry');
  for (const text of [metrics, status, page]) expect(text).not.toContain(token);
  expect(tokens.requests).toEqual([]);
});

it('the file of a header field that is missing shows beside a token of a file', async () => {
  const [path, token, header] = [tokenPath(), newToken(), tokenPath()];
  rename(path, token);
  rename(header, 'tenant-of-the-tests');
  const { sidecar } = await startStatic(path, acceptOnly(new Set([token])), {
    SIDECAR_UPSTREAM_HEADERS: JSON.stringify({ 'X-Tenant': { file: header } }),
  });
  rmSync(header);
  const readFault = async () => {
    const status = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as { token: Record<string, unknown> };
    return JSON.stringify(status.token.credentialFault);
  };
  await until(async () => (await readFault()).includes('does not exist'), 'the fault');
  expect(await readFault()).toContain(header);
});

it('a token of the file that is refused shows as such, with what to do', async () => {
  const [path, token] = [tokenPath(), newToken()];
  rename(path, token);
  const { url, sidecar } = await startStatic(path, acceptOnly(new Set()), { SIDECAR_AUTH_SETTLE_MS: '20000' });
  const startedAt = performance.now();
  for (let calls = 0; calls < 5; calls++) expect((await fetch(`${url}/policies`)).status).toBe(401);
  // Each would otherwise wait for auth.settleMs.
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  const readVerdict = async () => {
    const status = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as Record<'verdict', Verdict>;
    return status.verdict;
  };
  await until(async () => (await readVerdict()).headline.includes('401'), 'the verdict');
  const { where, advice } = await readVerdict();
  expect(where).toBe('token');
  expect(advice).toContain('`auth.tokenFile`');
  expect(await (await fetch(`${sidecar.adminUrl}/readyz`)).json()).toMatchObject({
    ready: true,
    reasons: ['token without an expiry'],
  });
});
