/**
 * What an application sees of a limit of 100 calls per 10 s when the refusals are 429, 503, 403, 420 or a text in a 200, with the
 * status named in throttle.refusals and without. Real HTTP on loopback, real time, all scenes at once: about two minutes a round.
 * Run: npm run bench:refusals [-- --rounds 3]
 */
import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { loadConfig } from '../../src/config/load/load.ts';
import { formatProblems } from '../../src/config/load/problems.ts';
import type { RefusalRule } from '../../src/throttle/refusal-rule.ts';
import { startSidecar } from '../../src/composition/sidecar.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { createRecordingLog } from '../support/recorded-events.ts';
import { newCredential } from '../support/secrets.ts';
import { startTokenServer } from '../support/token-server.ts';
import { seeded } from '../throttle/simulation.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '1' } } });
const ROUNDS = Number(values.rounds);
const CALLS_PER_WINDOW = 100;
const WINDOW_MS = 10_000;
const LIMIT_PER_MS = CALLS_PER_WINDOW / WINDOW_MS;
const SCENE_MS = 90_000;
const TEXT = 'limit exceeded';

interface Refusal {
  readonly name: string;
  readonly rule: RefusalRule;
  /** A refusal in a 200 is repeated for idempotent methods only. */
  readonly method: 'GET' | 'POST';
}

const REFUSALS: readonly Refusal[] = [
  // A refusal with and without a rule.
  { name: '429', rule: { status: 429 }, method: 'POST' },
  { name: '503', rule: { status: 503 }, method: 'POST' },
  { name: '403', rule: { status: 403 }, method: 'POST' },
  { name: '420', rule: { status: 420 }, method: 'POST' },
  { name: '200 with a text', rule: { status: 200, bodyContains: TEXT }, method: 'GET' },
];

/** Instants of arrival, milliseconds. */
const LOADS: Readonly<Record<string, (random: () => number) => number[]>> = {
  'bursts: 300 at once, every 30 s': () => [0, 30_000, 60_000].flatMap((at) => Array<number>(300).fill(at)),
  '0.8 × the limit': (random) => poisson(0.8 * LIMIT_PER_MS, random),
  '1.5 × the limit': (random) => poisson(1.5 * LIMIT_PER_MS, random),
};

function poisson(perMs: number, random: () => number): number[] {
  const arrivals: number[] = [];
  for (let at = 0; at < SCENE_MS; at -= Math.log(1 - random()) / perMs) arrivals.push(at);
  return arrivals;
}

interface Figures {
  calls: number;
  /** The application got the upstream's refusal. */
  refused: number;
  /** The application got a local reply, QUEUE_TIMEOUT for instance. */
  rejected: number;
  /** Attempts that the upstream refused. */
  refusedAttempts: number;
  attempts: number;
}

function refuse(response: ServerResponse, { status, bodyContains = 'no' }: RefusalRule): void {
  response.writeHead(status, { 'content-type': 'text/plain' }).end(`error: ${bodyContains}`);
}

const agent = new Agent({ connections: 2000 });
await using tokens = await startTokenServer();

async function play({ rule, method }: Refusal, arrivals: readonly number[], isConfigured: boolean): Promise<Figures> {
  const figures: Figures = { calls: arrivals.length, refused: 0, rejected: 0, refusedAttempts: 0, attempts: 0 };
  let windowAt = -Infinity;
  let left = 0;
  const upstream = createServer((incoming, response) => {
    incoming.resume();
    const now = performance.now();
    if (now - windowAt >= WINDOW_MS) [windowAt, left] = [now, CALLS_PER_WINDOW];
    figures.attempts++;
    if (left-- > 0) return void response.end('ok');
    figures.refusedAttempts++;
    refuse(response, rule);
  });
  const upstreamUrl = await listenOnLoopback(upstream);
  const sidecar = await start(upstreamUrl, isConfigured ? [rule] : []);
  const startedAt = performance.now();
  await Promise.all(
    arrivals.map(async (at) => {
      await sleep(Math.max(0, startedAt + at - performance.now()));
      const body = method === 'POST' ? '{"product":"travel"}' : null;
      const response = await request(sidecar.proxyUrl, { dispatcher: agent, method, body });
      const text = await response.body.text();
      if (response.headers['proxy-status'] !== undefined) figures.rejected++;
      else if (text !== 'ok') figures.refused++;
    }),
  );
  await sidecar.drain();
  await closeServer(upstream);
  return figures;
}

async function start(upstreamUrl: string, refusals: readonly RefusalRule[]) {
  const { id, secret } = newCredential();
  const loaded = loadConfig({
    env: {
      SIDECAR_BASE_URL: upstreamUrl,
      SIDECAR_AUTH_URL: tokens.url,
      SIDECAR_CLIENT_ID: id,
      SIDECAR_CLIENT_SECRET: secret,
      SIDECAR_AUDIENCE: 'https://api.partner.example/',
      SIDECAR_LISTEN: '127.0.0.1:0',
      SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
      SIDECAR_THROTTLE_REFUSALS: refusals.length === 0 ? '' : JSON.stringify(refusals),
    },
  });
  if (!loaded.ok) throw new Error(formatProblems(loaded.problems));
  const { config } = loaded;
  return startSidecar({
    config: { ...config, shutdown: { drainMs: 0, delayMs: 0 } },
    version: '0.0.0',
    log: createRecordingLog(),
    source: { loaded, load: undefined },
  });
}

function share(part: number, whole: number): string {
  return `${((100 * part) / whole).toFixed(1)} %`;
}

const scenes = Object.entries(LOADS).flatMap(([load, arrive]) =>
  REFUSALS.flatMap((refusal) =>
    (refusal.rule.status === 429 ? [true] : [true, false]).map((isConfigured) => ({
      load,
      arrive,
      refusal,
      isConfigured,
    })),
  ),
);
const totals = scenes.map((): Figures => ({ calls: 0, refused: 0, rejected: 0, refusedAttempts: 0, attempts: 0 }));
for (let round = 1; round <= ROUNDS; round++) {
  await Promise.all(
    scenes.map(async ({ arrive, refusal, isConfigured }, at) => {
      const figures = await play(refusal, arrive(seeded(round)), isConfigured);
      const total = totals[at];
      for (const name of Object.keys(figures) as (keyof Figures)[])
        if (total !== undefined) total[name] += figures[name];
    }),
  );
}
await agent.close();

console.log(
  `${String(CALLS_PER_WINDOW)} calls per ${String(WINDOW_MS / 1000)} s, ${String(ROUNDS)} × ${String(SCENE_MS / 1000)} s of calls, all defaults`,
);
console.log('| load | refusal | configured | calls | refused for the application | local replies | attempts refused |');
console.log('|---|---|---|---|---|---|---|');
for (const [at, { load, refusal, isConfigured }] of scenes.entries()) {
  const figures = totals[at];
  if (figures === undefined) continue;
  const { calls, refused, rejected, refusedAttempts, attempts } = figures;
  const cells = [load, `${refusal.name}, ${refusal.method}`, isConfigured ? 'yes' : 'no', calls, share(refused, calls)];
  console.log(`| ${[...cells, share(rejected, calls), share(refusedAttempts, attempts)].join(' | ')} |`);
}
