/**
 * The keep-alive race: an upstream that closes its idle connections a few milliseconds after each response, just when the
 * sidecar may be sending the next request on them (RFC 9112 §9.3.1).
 */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { startSidecarStack } from '../support/chain.ts';
import { OutcomeChecker } from '../support/ledger.ts';
import type { OutcomeReport, ClientOutcome } from '../support/ledger.ts';

const METHODS = ['GET', 'POST'] as const;
type Method = (typeof METHODS)[number];

/** The upstream closes an idle connection after at most this, and clients pause at most as long between requests. */
const JITTER_MS = 5;
const CLIENTS = 16;

export interface RaceReport extends OutcomeReport {
  readonly gets: number;
  readonly failedGets: number;
  readonly posts: number;
  readonly failedPosts: number;
  /** Connections that the upstream took. */
  readonly connections: number;
}

export async function runKeepAliveRace(count: number): Promise<RaceReport> {
  const ledger = new OutcomeChecker();
  await using chain = await startSidecarStack({
    name: 'keep-alive-race',
    env: { SIDECAR_RATE: '100000', SIDECAR_BURST: '10000' },
    respond: (seen, response) => {
      const id = String(seen.headers['x-request-id']);
      ledger.recordReceived(id, seen.bodySha256);
      response.end(`response to ${id}`);
    },
  });
  let connections = 0;
  chain.upstream.server.keepAliveTimeout = 60_000;
  chain.upstream.server.on('connection', () => connections++);
  chain.upstream.server.on('request', (message, response) => {
    response.once('finish', () => {
      closeWhenIdle(message.socket);
    });
    busy.add(message.socket);
  });

  const counts = { gets: 0, failedGets: 0, posts: 0, failedPosts: 0 };
  const agent = new Agent();
  let sent = 0;
  const client = async (): Promise<void> => {
    while (sent < count) {
      const index = sent++;
      const method = METHODS[index % 2] ?? 'GET';
      const hasFailed = (await sendOne(ledger, agent, chain.sidecar.proxyUrl, `id-${String(index)}`, method)) !== 200;
      counts[method === 'GET' ? 'gets' : 'posts']++;
      if (hasFailed) counts[method === 'GET' ? 'failedGets' : 'failedPosts']++;
      await sleep(Math.random() * JITTER_MS);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  await agent.destroy();
  return { ...ledger.report(), ...counts, connections };
}

/** Connections with a request in flight. */
const busy = new WeakSet<Socket>();

function closeWhenIdle(socket: Socket): void {
  busy.delete(socket);
  setTimeout(() => {
    if (!busy.has(socket)) socket.destroy();
  }, Math.random() * JITTER_MS);
}

/** @returns the status of the response; 0 without one */
async function sendOne(ledger: OutcomeChecker, agent: Agent, url: string, id: string, method: Method): Promise<number> {
  const sent = method === 'POST' ? JSON.stringify({ id }) : '';
  ledger.recordSent(id, { method, sent, expected: `response to ${id}`, withinMs: 20_000 });
  const outcome = await outcomeOf(agent, url, id, method, sent);
  ledger.recordOutcome(id, outcome);
  return outcome.kind === 'responded' ? outcome.status : 0;
}

async function outcomeOf(agent: Agent, url: string, id: string, method: Method, sent: string): Promise<ClientOutcome> {
  try {
    const headers = { 'x-request-id': id };
    const body = method === 'POST' ? sent : null;
    const response = await request(`${url}/race`, { dispatcher: agent, method, headers, body });
    return { kind: 'responded', status: response.statusCode, body: await response.body.text() };
  } catch {
    return { kind: 'cut' };
  }
}
