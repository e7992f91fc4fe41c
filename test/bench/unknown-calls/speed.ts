/** POSTs through a sidecar without and with a file of unknown calls, in turns: throughput at 32 connections, latency at a constant rate. */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closeServer, listenOnLoopback } from '../../support/loopback.ts';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady, type RunningSidecar } from '../../support/sidecar-process.ts';
import { startTokenServer } from '../../support/token-server.ts';

const ROUNDS = 7;
const ROUND_MS = 2000;
const CONNECTIONS = 32;
/** A fifth of what a sidecar on one core does. */
const POSTS_PER_SECOND = 1000;
const BODY = JSON.stringify({ text: 'x'.repeat(480) });

export interface Speed {
  readonly file: string;
  readonly postsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Medians of the rounds. */
export async function compareSpeed(): Promise<Speed[]> {
  const folder = mkdtempSync(join(tmpdir(), 'unknown-calls-speed-'));
  const server = createServer((message, response) => void message.resume().once('end', () => response.end(BODY)));
  server.keepAliveTimeout = 60_000;
  await using tokens = await startTokenServer();
  const settings = {
    ...baseSettings(await listenOnLoopback(server), tokens.url, newCredential()),
    ...{ SIDECAR_RATE: '1000000', SIDECAR_BURST: '10000', NODE_ENV: 'production' },
  };
  const subjects = [];
  for (const [file, env] of [
    ['without', {}],
    ['with', { SIDECAR_UNKNOWN_CALLS_FILE: join(folder, 'calls') }],
  ] as const) {
    const sidecar = await startSidecar({ name: 'unknown-calls-speed', env: { ...settings, ...env }, stdout: 'read' });
    await waitUntilReady(sidecar);
    subjects.push({
      file,
      sidecar,
      agent: new Agent({ keepAlive: true, maxSockets: CONNECTIONS }),
      rounds: new Array<Round>(),
    });
  }
  for (let round = -1; round < ROUNDS; round++)
    for (const { sidecar, agent, rounds } of subjects) {
      const measured = await playRound(sidecar, agent);
      if (round >= 0) rounds.push(measured);
    }
  for (const { sidecar, agent } of subjects) {
    agent.destroy();
    await sidecar.stop('SIGTERM');
  }
  await closeServer(server);
  rmSync(folder, { recursive: true });
  return subjects.map(({ file, rounds }) => ({
    file,
    postsPerSecond: Math.round(median(rounds.map(({ posts }) => posts / (ROUND_MS / 1000)))),
    p50Ms: median(rounds.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(rounds.map(({ p99Ms }) => p99Ms)),
  }));
}

interface Round {
  readonly posts: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

async function playRound(sidecar: RunningSidecar, agent: Agent): Promise<Round> {
  const { port } = new URL(sidecar.proxyUrl);
  let posts = 0;
  const endsAt = performance.now() + ROUND_MS;
  const client = async (): Promise<void> => {
    for (; performance.now() < endsAt; posts++) await post(agent, Number(port));
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, client));
  const times: number[] = [];
  const startedAt = performance.now();
  const pending: Promise<unknown>[] = [];
  for (let sent = 0; sent < (POSTS_PER_SECOND * ROUND_MS) / 1000;) {
    const due = ((performance.now() - startedAt) * POSTS_PER_SECOND) / 1000;
    for (; sent < due; sent++) pending.push(post(agent, Number(port)).then((ms) => times.push(ms)));
    await new Promise(setImmediate);
  }
  await Promise.all(pending);
  times.sort((one, other) => one - other);
  return { posts, p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) };
}

function post(agent: Agent, port: number): Promise<number> {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': BODY.length };
    const sent = request(
      { agent, port, host: '127.0.0.1', path: '/quotes?a=b', method: 'POST', headers },
      (response) => {
        if (response.statusCode !== 200) reject(new Error(`status ${String(response.statusCode)}`));
        response.resume().once('end', () => resolve(performance.now() - startedAt));
      },
    );
    sent.on('error', reject).end(BODY);
  });
}

function quantile(sorted: readonly number[], share: number): number {
  return Math.round((sorted[Math.floor(sorted.length * share)] ?? NaN) * 1000) / 1000;
}

function median(values: readonly number[]): number {
  return quantile(
    values.toSorted((one, other) => one - other),
    0.5,
  );
}
