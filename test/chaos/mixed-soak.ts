/**
 * The long run: requests of every kind against an upstream that fails one in a hundred of them, and what the sidecar's
 * process holds of memory and descriptors along the way. Linux only.
 */
import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent } from 'undici';
import { closeServer, freePort, listenOnLoopback } from '../support/loopback.ts';
import { processMemory } from '../support/process-memory.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { callVerified } from '../support/witness-client.ts';
import type { VerifiedOutcome } from '../support/witness-client.ts';
import { createVerificationStats, sendRequestedResponse, verifyRequest } from '../support/witness-upstream.ts';
import type { VerificationStats } from '../support/witness-upstream.ts';

const CLIENTS = 32;
const FAULT_SHARE = 0.01;
/** When the process is looked at, in parts of the whole. */
const LOOKS = [0.1, 0.5, 1];
/** Most bodies are of this size; every hundredth is a large one. */
const BODY_BYTES = 511;
const LARGE_BODY_BYTES = 200_003;

export interface Look {
  readonly requests: number;
  readonly rssMiB: number;
  readonly descriptors: number;
  readonly seconds: number;
}

export interface SoakReport {
  readonly looks: readonly Look[];
  /** How often each status was received; `cut` = no complete response. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly faults: number;
  /** Bodies that passed for complete and are not what was sent, on either side. */
  readonly altered: readonly string[];
}

/** @param onLook called with each look as it is taken */
export async function runMixedSoak(count: number, onLook: (look: Look) => void): Promise<SoakReport> {
  await using cleanup = new AsyncDisposableStack();
  const tokens = cleanup.use(await startTokenServer());
  const books = createVerificationStats();
  let faults = 0;
  const upstream = createServer((message, response) => {
    if (Math.random() >= FAULT_SHARE) {
      void respondWhole(books, message, response);
      return;
    }
    faults++;
    FAULTS[faults % FAULTS.length]?.(message, response);
  });
  const upstreamUrl = await listenOnLoopback(upstream);
  cleanup.defer(() => closeServer(upstream));
  const url = `http://127.0.0.1:${String(await freePort())}`;
  const sidecar = cleanup.use(
    spawnSidecar({
      name: 'mixed-soak',
      env: {
        ...baseSettings(upstreamUrl, tokens.url, newCredential()),
        SIDECAR_LISTEN: url.slice('http://'.length),
        SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
        SIDECAR_RATE: '1000000',
        SIDECAR_BURST: '100000',
        SIDECAR_REQUEST_TIMEOUT_MS: '500',
        SIDECAR_BODY_IDLE_TIMEOUT_MS: '500',
        // Lines of a million requests would be kept by the test, not by the sidecar.
        SIDECAR_LOG_LEVEL: 'error',
      },
    }),
  );
  const agent = new Agent({ connections: CLIENTS });
  cleanup.defer(() => agent.destroy());
  while ((await callVerified(agent, `${url}/soak`, { id: 'first' })).status === 'cut')
    await new Promise((resolve) => setTimeout(resolve, 20));

  const outcomes: Record<string, number> = {};
  const altered: string[] = [];
  const looks: Look[] = [];
  const startedAt = performance.now();
  let [sent, done] = [0, 0];
  const client = async (): Promise<void> => {
    while (sent < count) {
      const { status: outcome, alteration } = await callOnce(agent, url, sent++);
      if (alteration !== undefined) altered.push(alteration);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      done++;
      if (!LOOKS.some((part) => done === Math.round(part * count))) continue;
      const look = { requests: done, ...lookAt(sidecar.pid), seconds: (performance.now() - startedAt) / 1000 };
      looks.push(look);
      onLook(look);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const { code } = await sidecar.stop('SIGTERM');
  if (code !== 0) throw new Error(`the sidecar ended with ${String(code)}`);
  return { looks, outcomes, faults, altered: [...altered, ...books.altered] };
}

/** What a growth from one look to the next may be: a heap breathes by this much. */
const MOST_GROWTH_MIB = 48;
const MOST_GROWTH_DESCRIPTORS = 2 * CLIENTS;

/** Why the looks show growth without bound; empty when they do not. */
export function findGrowth(looks: readonly Look[]): string[] {
  const [early, middle, late] = looks;
  if (early === undefined || middle === undefined || late === undefined) return ['looked at too seldom'];
  const found: string[] = [];
  if (late.rssMiB - middle.rssMiB > MOST_GROWTH_MIB) found.push('memory grows in the second half');
  if (late.descriptors - early.descriptors > MOST_GROWTH_DESCRIPTORS) found.push('descriptors grow');
  return found;
}

type Respond = (message: IncomingMessage, response: ServerResponse) => void;

async function respondWhole(
  books: VerificationStats,
  message: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const attempt = await verifyRequest(message, books);
  if (attempt === undefined) response.destroy();
  else sendRequestedResponse(attempt.stated.id, message, response);
}

const FAULTS: readonly Respond[] = [
  (_, response) => response.socket?.resetAndDestroy(),
  (_, response) => response.destroy(),
  (message, response) => {
    message.resume();
    response.writeHead(503).end('in trouble');
  },
  (_, response) => response.writeHead(200, { 'content-length': BODY_BYTES }).write('half', () => response.destroy()),
  (_, response) => response.socket?.end('HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n'),
  // Silence: the sidecar's own time-out ends it.
  (message) => message.resume(),
];

function callOnce(dispatcher: Agent, url: string, index: number): Promise<VerifiedOutcome> {
  const bytes = index % 100 === 99 ? LARGE_BODY_BYTES : BODY_BYTES;
  const requestBytes = index % 2 === 0 ? 0 : bytes;
  return callVerified(dispatcher, `${url}/soak`, { id: `mixed-${String(index)}`, requestBytes, responseBytes: bytes });
}

function lookAt(pid: number): { rssMiB: number; descriptors: number } {
  const rssBytes = processMemory(pid, 'VmRSS');
  return { rssMiB: Math.round(rssBytes / 1024 / 1024), descriptors: readdirSync(`/proc/${String(pid)}/fd`).length };
}
