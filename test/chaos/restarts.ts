/**
 * Restarts under load: the sidecar ends by SIGTERM and starts anew on the same port, again and again, while applications
 * go on calling. They retry only when the connection is refused: each accepted request must get a response.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { OutcomeChecker } from '../support/ledger.ts';
import type { OutcomeReport, ClientOutcome } from '../support/ledger.ts';
import { freePort } from '../support/loopback.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

/** Callers of each kind. */
const CALLERS = 8;
/** How long each sidecar is under load before its SIGTERM. */
const LIFE_MS = 120;
/** Between attempts to connect: rare enough that refused ones leave the processor to the sidecar that starts. */
const RETRY_MS = 20;
/** On a busy machine a caller may miss the short lives of several sidecars. */
const WITHIN_MS = 200_000;
/** How long the upstream takes, so that there is always something under way. */
const RESPONSE_MS = 10;

export interface RestartReport extends OutcomeReport {
  readonly restarts: number;
  /** Exit codes other than 0. */
  readonly failedExits: readonly (number | null)[];
  /** Accepted without a response: the upstream saw them, their callers got no response. */
  readonly lost: readonly string[];
  /** Connections that broke before the sidecar had read a request on them. */
  readonly brokenUnread: readonly string[];
  /** How many of these each restart cost. */
  readonly brokenByRestart: readonly number[];
  readonly rejectedConnections: number;
}

export async function runRestarts(restarts: number): Promise<RestartReport> {
  const ledger = new OutcomeChecker();
  const seen = new Set<string>();
  await using tokens = await startTokenServer();
  await using upstream = await startRecordingUpstream(async (message, response) => {
    const id = String(message.headers['x-request-id']);
    seen.add(id);
    ledger.recordReceived(id, message.bodySha256);
    await sleep(RESPONSE_MS);
    response.end(`response to ${id}`);
  });
  const port = await freePort();
  const load = startLoad(ledger, `http://127.0.0.1:${String(port)}`);
  const env = {
    ...baseSettings(upstream.url, tokens.url, newCredential()),
    SIDECAR_LISTEN: `127.0.0.1:${String(port)}`,
    SIDECAR_RATE: '100000',
    SIDECAR_BURST: '10000',
  };
  const failedExits: (number | null)[] = [];
  const cutBy: number[] = [];
  for (let round = 0; round < restarts; round++) {
    await using sidecar = await startSidecar({ name: 'restarts', env });
    // The last one sees the callers through to their end.
    await sleep(LIFE_MS);
    if (round === restarts - 1) await load.finish();
    const { code } = await sidecar.stop('SIGTERM');
    if (code !== 0) failedExits.push(code);
    cutBy.push(load.cut.length);
  }
  const [lost, brokenUnread] = [load.cut.filter((id) => seen.has(id)), load.cut.filter((id) => !seen.has(id))];
  const brokenByRestart = cutBy.map(
    (end, round) => load.cut.slice(cutBy[round - 1] ?? 0, end).filter((id) => !seen.has(id)).length,
  );
  return {
    ...ledger.report(),
    restarts,
    failedExits,
    lost,
    brokenUnread,
    brokenByRestart,
    rejectedConnections: load.refusals(),
  };
}

interface Load {
  /** Ids whose connection broke. */
  readonly cut: readonly string[];
  readonly refusals: () => number;
  /** Lets every caller end its call. */
  finish(): Promise<void>;
}

function startLoad(ledger: OutcomeChecker, url: string): Load {
  const cut: string[] = [];
  let refusals = 0;
  let isOver = false;
  const caller = async (name: string, agent: Agent): Promise<void> => {
    for (let count = 0; !isOver; count++) {
      const id = `${name}-${String(count)}`;
      const sent = JSON.stringify({ id });
      ledger.recordSent(id, { method: 'POST', sent, expected: `response to ${id}`, withinMs: WITHIN_MS });
      let outcome = await callOnce(agent, url, id, sent);
      for (; outcome === 'refused'; outcome = await callOnce(agent, url, id, sent)) {
        refusals++;
        await sleep(RETRY_MS);
      }
      ledger.recordOutcome(id, outcome);
      if (outcome.kind === 'cut') cut.push(id);
      await sleep(Math.random() * 3);
    }
  };
  const [pooled, fresh] = [new Agent(), new Agent({ pipelining: 0 })];
  const callers = Array.from({ length: CALLERS }, (_, index) => [
    caller(`pooled-${String(index)}`, pooled),
    caller(`fresh-${String(index)}`, fresh),
  ]);
  return {
    cut,
    refusals: () => refusals,
    async finish() {
      isOver = true;
      await Promise.all(callers.flat());
      await Promise.all([pooled.destroy(), fresh.destroy()]);
    },
  };
}

async function callOnce(agent: Agent, url: string, id: string, sent: string): Promise<ClientOutcome | 'refused'> {
  try {
    const headers = { 'x-request-id': id };
    const response = await request(`${url}/restarts`, { dispatcher: agent, method: 'POST', headers, body: sent });
    return { kind: 'responded', status: response.statusCode, body: await response.body.text() };
  } catch (error) {
    const isRefused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
    return isRefused ? 'refused' : { kind: 'cut' };
  }
}
