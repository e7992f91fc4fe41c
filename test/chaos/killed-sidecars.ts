/**
 * Sidecars that are killed (SIGKILL) at random instants under POSTs at a constant rate, one after another on the same port and the same
 * file of unknown calls: each call that reached the upstream has its response, or is open in the file.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { listOpenCalls } from '../support/open-calls.ts';
import { createRandom } from '../bench/governor/seeded.ts';
import { closeServer, freePort, listenOnLoopback } from '../support/loopback.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

export interface KillReport {
  readonly posts: number;
  /** Calls whose head, or a part of their body, the upstream has received. */
  readonly reached: number;
  /** Whole responses of the upstream, and local replies that say nothing of an unknown outcome. */
  readonly responded: number;
  readonly open: number;
  /** Reached, not responded, and not open in the file. */
  readonly missing: readonly string[];
  /** Answered, and still open in the file: the kill came before their ends were written. */
  readonly overReported: number;
  /** Open, and the upstream has nothing of them: the kill came before their first byte. */
  readonly neverReached: number;
  readonly fileBytes: number;
  /** Exit code of the last sidecar, which ends by SIGTERM. */
  readonly lastExit: number | null;
}

const POSTS_PER_SECOND = 100;
const LIFE_MS = { least: 20, most: 600 };
/** More than the replay buffer of these sidecars. */
const LARGE_BODY = randomBytes(256 * 1024);
const SMALL_BODY = Buffer.from('{"quote":1}');

export async function runKills(kills: number, seed: number): Promise<KillReport> {
  const [lives, load, upstreamRandom] = ['lives', 'load', 'upstream'].map((of) => createRandom(seed, of));
  const reached = new Set<string>();
  const responded = new Set<string>();
  const server = createServer((message, response) => {
    reached.add(keyOf(message));
    respond(message, response, upstreamRandom?.() ?? 0);
  });
  await using tokens = await startTokenServer();
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'killed-sidecars-'));
  const file = join(folder, 'calls');
  const env = {
    ...baseSettings(await listenOnLoopback(server), tokens.url, newCredential()),
    ...{ SIDECAR_LISTEN: `127.0.0.1:${String(port)}`, SIDECAR_UNKNOWN_CALLS_FILE: file, SIDECAR_LOG_LEVEL: 'warn' },
    ...{ SIDECAR_RATE: '100000', SIDECAR_BURST: '10000', SIDECAR_REPLAY_BUFFER_BYTES: '65536' },
    SIDECAR_UNKNOWN_CALLS_ON_WRITE_ERROR: 'refuse',
  };
  const agent = new Agent({ keepAlive: true });
  const calls: Promise<void>[] = [];
  const timer = setInterval(() => {
    const key = String(calls.length);
    calls.push(
      post(agent, port, key, load?.() ?? 0).then((hasResponse) => {
        if (hasResponse) responded.add(key);
      }),
    );
  }, 1000 / POSTS_PER_SECOND);
  for (let kill = 0; kill < kills; kill++) {
    await using sidecar = await startSidecar({ name: 'killed-sidecars', env: { ...env, SIDECAR_LOG_LEVEL: 'info' } });
    await sleep(LIFE_MS.least + (lives?.() ?? 0) * (LIFE_MS.most - LIFE_MS.least));
    await sidecar.stop('SIGKILL');
  }
  clearInterval(timer);
  await Promise.all(calls);
  await using last = await startSidecar({ name: 'killed-sidecars', env: { ...env, SIDECAR_LOG_LEVEL: 'info' } });
  const { code } = await last.stop('SIGTERM');
  agent.destroy();
  await closeServer(server);
  const open = new Set(listOpenCalls(readFileSync(file, 'utf8'), '').map(({ idempotencyKey }) => idempotencyKey ?? ''));
  const fileBytes = statSync(file).size;
  rmSync(folder, { recursive: true });
  return {
    ...{ posts: calls.length, reached: reached.size, responded: responded.size, open: open.size, fileBytes },
    missing: [...reached].filter((key) => !responded.has(key) && !open.has(key)),
    overReported: [...open].filter((key) => responded.has(key)).length,
    neverReached: [...open].filter((key) => !reached.has(key)).length,
    lastExit: code,
  };
}

function keyOf({ headers }: IncomingMessage): string {
  return String(headers['idempotency-key']);
}

/** Mostly a response after 0 to 40 ms; some come before the body, are cut or large, refuse the call, or do not come. */
function respond(message: IncomingMessage, response: ServerResponse, chance: number): void {
  const finish = (act: () => void): void => {
    message.resume().once('end', () => void setTimeout(act, chance * 40));
  };
  message.on('error', () => response.destroy());
  if (chance < 0.02) response.writeHead(413).end('too large');
  else if (chance < 0.04) message.destroy();
  else if (chance < 0.06) finish(() => message.destroy());
  else if (chance < 0.08)
    finish(() => response.writeHead(200, { 'content-length': 9 }).write('cut', () => message.destroy()));
  else if (chance < 0.1) finish(() => response.writeHead(429, { 'retry-after': '0' }).end());
  else if (chance < 0.2) finish(() => response.writeHead(201).end(LARGE_BODY));
  else finish(() => response.writeHead(201).end('{"id":1}'));
}

/** Resolves whether its client knows the outcome. */
function post(agent: Agent, port: number, key: string, chance: number): Promise<boolean> {
  return new Promise((resolve) => {
    const body = chance < 0.05 ? LARGE_BODY : SMALL_BODY;
    const headers = { host: 'localhost', 'idempotency-key': key, 'content-type': 'application/json' };
    const sent = request({ agent, port, host: '127.0.0.1', path: '/quotes', method: 'POST', headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => resolve(false));
      response.on('close', () => {
        const isUnknown = Buffer.concat(chunks).includes('"outcome":"unknown"');
        resolve(response.complete && !isUnknown);
      });
    });
    sent.on('error', () => resolve(false));
    // Early replies end their connection within a large body.
    sent.end(body);
  });
}
