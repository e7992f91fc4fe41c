/**
 * POSTs whose outcome may stay unknown: an upstream that refuses, resets, stalls and breaks off, token requests that fail, short
 * deadlines, and drains that end while calls are at the upstream. What each client was informed of is compared with the upstream's count.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { Random } from '../../src/platform/clock.ts';
import { createRandom } from '../bench/governor/seeded.ts';
import { OutcomeChecker, type ClientOutcome, type OutcomeReport } from '../support/ledger.ts';
import { freePort } from '../support/loopback.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady, type RunningSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { startFaultyUpstream, type FaultyUpstream } from './faulty-upstream.ts';

const CALLERS = 24;
/** On a busy machine a caller may wait for several sidecars to start. */
const WITHIN_MS = 120_000;
/** How long each sidecar is under load before its SIGTERM. */
const SHORTEST_LIFE_MS = 150;
const LONGEST_LIFE_MS = 600;
/** Between attempts to connect while no sidecar listens. */
const RECONNECT_MS = 20;
/** Of a sidecar, the chance that its drain is ended by a second signal. */
const SECOND_SIGNAL_SHARE = 0.15;
/** Of the token requests that fail. */
const FAILING_TOKENS_SHARE = 0.05;
const REPLAY_BUFFER_BYTES = 2048;

const SETTINGS = {
  SIDECAR_RATE: '100000',
  SIDECAR_BURST: '10000',
  SIDECAR_DRAIN_MS: '300',
  SIDECAR_DEADLINE_MS: '1500',
  SIDECAR_REQUEST_TIMEOUT_MS: '400',
  SIDECAR_BODY_IDLE_TIMEOUT_MS: '400',
  SIDECAR_REPLAY_BUFFER_BYTES: String(REPLAY_BUFFER_BYTES),
  SIDECAR_AUTH_INVALIDATION_COOLDOWN_MS: '5',
  SIDECAR_AUTH_SETTLE_MS: '50',
};

export interface UnknownOutcomesReport extends OutcomeReport {
  /** Sidecars, all but the last ended by SIGTERM under load. */
  readonly lives: number;
  /** Request lines of the logs, found by the id that the caller sent. */
  readonly logged: number;
  /** Calls that the upstream carried out, and whose line is that of a local reply without the mark. */
  readonly unmarkedLines: readonly string[];
  /** How often the upstream did what. */
  readonly acted: Readonly<Record<string, number>>;
  /** By reply, as status and code: how many calls the upstream had carried out, and how many not. */
  readonly replies: Readonly<Record<string, { readonly done: number; readonly undone: number }>>;
}

/** @param seed of the choices; what happens when is also a matter of the machine */
export async function runUnknownOutcomes(seed: number, posts: number): Promise<UnknownOutcomesReport> {
  const ledger = new OutcomeChecker();
  const done = new Set<string>();
  const [upstreamRandom, tokenRandom, lifeRandom] = ['upstream', 'tokens', 'lives'].map((of) => createRandom(seed, of));
  if (upstreamRandom === undefined || tokenRandom === undefined || lifeRandom === undefined) throw new Error('three');
  await using tokens = await startTokenServer({ isDown: () => tokenRandom() < FAILING_TOKENS_SHARE });
  await using upstream = await startFaultyUpstream(upstreamRandom, (id, bodySha256) => {
    done.add(id);
    ledger.recordReceived(id, bodySha256);
  });
  const port = await freePort();
  const env = {
    ...baseSettings(upstream.url, tokens.url, newCredential()),
    ...SETTINGS,
    SIDECAR_LISTEN: `127.0.0.1:${String(port)}`,
  };
  const callers = startCallers(ledger, `http://127.0.0.1:${String(port)}`, seed, posts);
  const lines: RequestLine[] = [];
  let lives = 0;
  for (let isOver = false; !isOver; lives++) {
    await using sidecar = await startSidecar({ name: 'unknown-outcomes', env });
    isOver = await liveOnce(sidecar, upstream, callers.whenOver, lifeRandom);
    lines.push(...readRequestLines(sidecar.stdout()));
  }
  const replies: Record<string, { done: number; undone: number }> = {};
  for (const [id, reply] of await callers.whenOver) {
    const row = (replies[reply] ??= { done: 0, undone: 0 });
    row[done.has(id) ? 'done' : 'undone']++;
  }
  const unmarkedLines = lines
    .filter(
      ({ requestId, localReply, outcome }) => done.has(requestId) && localReply !== undefined && outcome !== 'unknown',
    )
    .map((line) => JSON.stringify(line));
  const logged = lines.filter(({ requestId }) => requestId.startsWith('post-')).length;
  return { ...ledger.report(), lives, logged, unmarkedLines, acted: upstream.acted, replies };
}

interface RequestLine {
  readonly msg: string;
  readonly requestId: string;
  readonly localReply?: string;
  readonly outcome?: string;
}

function readRequestLines(log: string): RequestLine[] {
  const lines = log.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as RequestLine).filter(({ msg }) => msg === 'request');
}

/** @returns whether the callers have finished before the sidecar was stopped */
async function liveOnce(
  sidecar: RunningSidecar,
  upstream: FaultyUpstream,
  callersEnd: Promise<unknown>,
  random: Random,
): Promise<boolean> {
  await waitUntilReady(sidecar);
  const lifeMs = SHORTEST_LIFE_MS + (LONGEST_LIFE_MS - SHORTEST_LIFE_MS) * random();
  const outage = sleep(lifeMs * random()).then(() => upstream.refuseConnections(60 * random()));
  const isOver = await Promise.race([callersEnd.then(() => true), sleep(lifeMs).then(() => false)]);
  await outage;
  const stopped = sidecar.stop('SIGTERM');
  if (random() < SECOND_SIGNAL_SHARE) {
    await sleep(100 * random());
    await sidecar.stop('SIGTERM');
  }
  await stopped;
  return isOver;
}

interface Callers {
  /** The reply to each call, by its id. */
  readonly whenOver: Promise<ReadonlyMap<string, string>>;
}

function startCallers(ledger: OutcomeChecker, url: string, seed: number, posts: number): Callers {
  const replies = new Map<string, string>();
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  let sent = 0;
  const runCaller = async (random: Random): Promise<void> => {
    while (sent < posts) {
      const id = `post-${String(sent++)}`;
      const body = JSON.stringify({ id, pad: 'p'.repeat(random() < 0.2 ? 2 * REPLAY_BUFFER_BYTES : 100) });
      const timeoutMs = [undefined, 50, 200, 600][Math.floor(4 * random())];
      const expected = `done ${id}`;
      ledger.recordSent(id, { method: 'POST', sent: body, expected, withinMs: WITHIN_MS });
      let outcome = await callOnce(agent, url, { id, body, timeoutMs });
      for (; outcome === 'not connected'; outcome = await callOnce(agent, url, { id, body, timeoutMs }))
        await sleep(RECONNECT_MS);
      ledger.recordOutcome(id, outcome);
      replies.set(id, describeReply(outcome));
    }
  };
  const finish = async (): Promise<ReadonlyMap<string, string>> => {
    await Promise.all(Array.from({ length: CALLERS }, (_, n) => runCaller(createRandom(seed, `caller ${String(n)}`))));
    await agent.destroy();
    return replies;
  };
  return { whenOver: finish() };
}

interface Call {
  readonly id: string;
  readonly body: string;
  readonly timeoutMs: number | undefined;
}

async function callOnce(
  agent: Agent,
  url: string,
  { id, body, timeoutMs }: Call,
): Promise<ClientOutcome | 'not connected'> {
  const headers = {
    'x-request-id': id,
    ...(timeoutMs === undefined ? {} : { 'x-sidecar-timeout-ms': String(timeoutMs) }),
  };
  try {
    const response = await request(url, { dispatcher: agent, method: 'POST', headers, body });
    return { kind: 'responded', status: response.statusCode, body: await response.body.text() };
  } catch (error) {
    const isRefused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
    return isRefused ? 'not connected' : { kind: 'cut' };
  }
}

function describeReply(outcome: ClientOutcome): string {
  if (outcome.kind !== 'responded') return outcome.kind;
  const [, code = 'upstream'] = /"code":"([A-Z_]+)"/.exec(String(outcome.body)) ?? [];
  return `${String(outcome.status)} ${code}`;
}
