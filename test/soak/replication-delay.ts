/**
 * `npm run soak:replication [-- SCENARIO …]`: APIs that accept a new token only after a delay, all nodes or one of two, refuse all, or revoke
 * some, under a load of 20 calls per second over loopback, for up to seven minutes. Bodies, some too long to be repeated, are compared at both
 * ends. Ends with 1 when a claim is violated.
 */
import { createHash, randomBytes } from 'node:crypto';
import { Agent, createServer, request as sendRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import type { IssuedToken } from '../support/token-server.ts';

const CALLS_PER_SECOND = 20;

/** A body that is longer than the replay buffer: each seventh call, so that it meets both nodes. */
const LONG_BODY_BYTES = 1_500_000;
const LONG_BODY_EVERY = 7;

interface Scenario {
  readonly lifetimeSeconds: number;
  readonly seconds: number;
  /** Whether the API accepts the token now. `index` counts issued tokens from 0, `node` is 0 and 1 in turn. */
  readonly accepts: (
    token: IssuedToken,
    index: number,
    now: number,
    issued: readonly IssuedToken[],
    node: number,
  ) => boolean;
  /** What must hold. */
  readonly check: (result: Result) => readonly string[];
}

interface Call {
  readonly startedAt: number;
  readonly durationMs: number;
  readonly status: number;
}

interface Result {
  readonly calls: readonly Call[];
  readonly tokens: readonly IssuedToken[];
  readonly refusals: number;
  /** Instants of `performance.now()`. */
  readonly firstAcceptedAt: number;
}

const ageMs = (token: IssuedToken, now: number): number => now - token.issuedAt;
const refused = ({ calls }: Result): number => calls.filter(({ status }) => status !== 200).length;
const expectThat = (isTrue: boolean, claim: string): string[] => (isTrue ? [] : [claim]);

const renewals = (delaySeconds: number): Scenario => ({
  lifetimeSeconds: 120,
  seconds: 4 * 90 + 30,
  accepts: (token, index, now) => index === 0 || ageMs(token, now) >= delaySeconds * 1000,
  check: (result) => [
    ...expectThat(refused(result) === 0, 'no client sees a 401'),
    ...expectThat(result.tokens.length <= 6, 'one token request for each renewal'),
  ],
});

/** Two renewals of a token of 60 s. */
const lateNode = (delaySeconds: number): Scenario => ({
  lifetimeSeconds: 60,
  seconds: 2 * 45 + 20,
  accepts: (token, index, now, _issued, node) =>
    now < token.expiresAt && (index === 0 || node === 0 || ageMs(token, now) >= delaySeconds * 1000),
  check: (result) => [
    ...expectThat(refused(result) === 0, 'no client sees a 401'),
    ...expectThat(result.tokens.length <= 3, 'one token request for each renewal'),
  ],
});

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'delay of 3 s': renewals(3),
  'delay of 20 s': renewals(20),
  'a node late by 0.3 s': lateNode(0.3),
  'a node late by 1.5 s': lateNode(1.5),
  'a node late by 5 s': lateNode(5),
  'a node late by 10 s': lateNode(10),
  'revoked when the next one is issued': {
    lifetimeSeconds: 60,
    seconds: 2 * 45 + 20,
    accepts: (_token, index, _now, issued) => index === issued.length - 1,
    check: (result) => [
      ...expectThat(refused(result) <= 2, 'only long bodies in flight see a 401'),
      ...expectThat(result.tokens.length <= 3, 'one token request for each renewal'),
    ],
  },
  'cold start with 20 s': {
    lifetimeSeconds: 3600,
    seconds: 40,
    accepts: (token, _index, now) => ageMs(token, now) >= 20_000,
    check: ({ calls, tokens, firstAcceptedAt }) => [
      ...expectThat(
        firstAcceptedAt - (tokens[0]?.issuedAt ?? 0) <= 22_000,
        'the first 200 comes within 2 s of the acceptance',
      ),
      ...expectThat(
        calls.every(({ startedAt, status }) => startedAt < firstAcceptedAt || status === 200),
        'no 401 after the first acceptance',
      ),
    ],
  },
  'wrong audience': {
    lifetimeSeconds: 3600,
    seconds: 300,
    accepts: () => false,
    check: ({ calls, tokens }) => [
      ...expectThat(Math.max(...calls.map(({ durationMs }) => durationMs)) < 5_000, 'no call waits longer than 5 s'),
      ...expectThat(tokens.length <= 8, 'at most 8 token requests'),
    ],
  },
  'revoked 1 s after its issue': {
    lifetimeSeconds: 60,
    seconds: 80,
    accepts: (token, index, now) => index !== 1 || ageMs(token, now) < 1_000,
    check: (result) => expectThat(refused(result) === 0, 'no client sees the 401'),
  },
  'new one delayed, then both revoked': {
    lifetimeSeconds: 60,
    seconds: 80,
    accepts: (token, index, now, issued) =>
      index === 0 ? issued[1] === undefined || ageMs(issued[1], now) < 2_000 : index > 1 || ageMs(token, now) < 0,
    check: (result) => expectThat(refused(result) <= 3, 'only calls that had been replayed see a 401'),
  },
};

async function run(name: string, scenario: Scenario): Promise<boolean> {
  const credential = newCredential();
  await using tokenServer = await startTokenServer({ expiresIn: scenario.lifetimeSeconds });
  let refusals = 0;
  let firstAcceptedAt = Infinity;
  let nextNode = 0;
  const api = createServer((request, response) => {
    const value = request.headers.authorization?.replace('Bearer ', '');
    const index = tokenServer.issued.findIndex((token) => token.value === value);
    const token = tokenServer.issued[index];
    const now = performance.now();
    const digest = createHash('sha256');
    const isAccepted = token !== undefined && scenario.accepts(token, index, now, tokenServer.issued, nextNode++ % 2);
    if (isAccepted) firstAcceptedAt = Math.min(firstAcceptedAt, now);
    else refusals++;
    request.on('data', (chunk: Buffer) => digest.update(chunk));
    request.on('end', () => {
      if (isAccepted) response.writeHead(200).end(digest.digest('hex'));
      else response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
    });
  });
  const apiUrl = await listenOnLoopback(api);
  await using sidecar = await startSidecar({
    name: `soak-replication-${name.replaceAll(' ', '-')}`,
    env: { ...baseSettings(apiUrl, tokenServer.url, credential), SIDECAR_RATE: '1000' },
  });
  const agent = new Agent({ keepAlive: true });
  const pending: Promise<Call>[] = [];
  const startedAt = performance.now();
  while (performance.now() - startedAt < scenario.seconds * 1000) {
    const isLong = pending.length % LONG_BODY_EVERY === LONG_BODY_EVERY - 1;
    pending.push(call(sidecar.proxyUrl, agent, isLong ? LONG_BODY_BYTES : 300));
    await sleep(Math.max(1, startedAt + (pending.length * 1000) / CALLS_PER_SECOND - performance.now()));
  }
  const calls = await Promise.all(pending);
  agent.destroy();
  await closeServer(api);
  const metrics = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
  const fallbacks = /^bearer_sidecar_token_fallbacks_total\{[^}]*\} (\d+)/m.exec(metrics)?.[1] ?? '?';
  const result: Result = { calls, tokens: tokenServer.issued, refusals, firstAcceptedAt };
  const durations = calls.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
  const first = (firstAcceptedAt - (tokenServer.issued[0]?.issuedAt ?? 0)) / 1000;
  console.log(
    `${name}: ${String(calls.length)} calls, 401 to clients ${String(refused(result))}, 401 at the API ${String(refusals)}, ` +
      `token requests ${String(tokenServer.requests.length)}, fallbacks ${fallbacks}, p99 ${at(durations, 0.99)} ms, longest ` +
      `${at(durations, 1)} ms, first 200 ${first.toFixed(2)} s after the first token`,
  );
  const violated = scenario.check(result);
  for (const claim of violated) console.error(`${name}: VIOLATED: ${claim}`);
  return violated.length === 0;
}

/** A PUT whose 200 has the digest of its body. */
async function call(url: string, agent: Agent, bodyBytes: number): Promise<Call> {
  const body = randomBytes(bodyBytes);
  const startedAt = performance.now();
  const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const request = sendRequest(
      url,
      { method: 'PUT', agent, headers: { 'content-length': body.length } },
      (response) => {
        let received = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: received })).on('error', reject);
      },
    );
    request.on('error', reject).end(body);
  });
  if (status === 200 && text !== createHash('sha256').update(body).digest('hex')) throw new Error('a body was altered');
  return { startedAt, durationMs: performance.now() - startedAt, status };
}

function at(sorted: readonly number[], share: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN).toFixed(1);
}

const wanted = process.argv.slice(2);
const chosen = Object.entries(SCENARIOS).filter(([name]) => wanted.length === 0 || wanted.includes(name));
const passed = await Promise.all(chosen.map(([name, scenario]) => run(name, scenario)));
if (passed.length === 0 || passed.includes(false)) process.exitCode = 1;
