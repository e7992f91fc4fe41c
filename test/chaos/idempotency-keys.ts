/**
 * POSTs through a sidecar to an API that honours idempotency keys and whose connections break, or that stands behind an HAProxy which
 * breaks them and gives up too early: how many calls fail for the application, and how many are carried out twice.
 */
import { Agent, request } from 'undici';
import { startSidecar } from '../../src/composition/sidecar.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { formatProblems } from '../../src/config/load/problems.ts';
import type { Random } from '../../src/platform/clock.ts';
import { createRandom } from '../bench/governor/seeded.ts';
import { startBreakingHaproxy } from '../support/haproxy.ts';
import { createRecordingLog } from '../support/recorded-events.ts';
import { newCredential } from '../support/secrets.ts';
import { startTokenServer } from '../support/token-server.ts';
import { startKeyedUpstream, type KeyedUpstream } from './keyed-upstream.ts';

const CALLERS = 24;
/** Much more than other calls take on a busy machine: with a 504 to many of them, the retry budget is spent and calls fail. */
const HAPROXY_TIMEOUT_MS = 400;
const HEADER = 'Idempotency-Key';
/** Of the calls; the application sends its own key with them. */
const OWN_KEY_SHARE = 0.1;

export interface KeyedRun {
  readonly seed: number;
  readonly posts: number;
  /** Whether `retry.idempotencyKey.header` is set. */
  readonly isOn: boolean;
  /** Whether the API reads keys. Default true. */
  readonly isHonoured?: boolean;
  /** Who breaks connections: the API itself, or an HAProxy before it. */
  readonly breaker: 'api' | 'haproxy';
  /** Of the attempts, 0 to 1. */
  readonly faultShare: number;
}

export interface KeyedReport {
  /** Calls without a whole response of the API: the number of each status or error. */
  readonly failures: Readonly<Record<string, number>>;
  readonly failed: number;
  readonly executedTwice: number;
  /** Calls with a 200 that the API has not carried out. */
  readonly falselyDone: number;
  readonly counts: KeyedUpstream['counts'];
}

/** @param run `seed` chooses faults, keys and back-off; what happens when is also a matter of the machine */
export async function runIdempotencyKeys({
  seed,
  posts,
  isOn,
  isHonoured = true,
  breaker,
  faultShare,
}: KeyedRun): Promise<KeyedReport> {
  const isBehindHaproxy = breaker === 'haproxy';
  // Some of the calls take longer than HAProxy waits.
  const longMs = (isBehindHaproxy ? HAPROXY_TIMEOUT_MS : 40) + 20;
  const workMs = (random: Random): number => (random() < 0.03 ? longMs + 40 * random() : 5 * random());
  await using upstream = await startKeyedUpstream({
    ...{ keyHeader: isHonoured ? HEADER.toLowerCase() : 'x-not-read', random: createRandom(seed, 'upstream'), workMs },
    faultShare: isBehindHaproxy ? 0 : faultShare,
  });
  await using haproxy = isBehindHaproxy
    ? await startBreakingHaproxy({ upstream: upstream.url, faultShare, timeoutMs: HAPROXY_TIMEOUT_MS })
    : undefined;
  await using tokens = await startTokenServer();
  const sidecar = await startKeyedSidecar(
    haproxy?.url ?? upstream.url,
    tokens.url,
    isOn,
    createRandom(seed, 'sidecar'),
  );
  const agent = new Agent();
  const failures: Record<string, number> = {};
  const done = new Set<string>();
  let sent = 0;
  const runCaller = async (random: Random): Promise<void> => {
    while (sent < posts) {
      const id = `post-${String(sent++)}`;
      const headers = random() < OWN_KEY_SHARE ? { 'IDEMPOTENCY-key': `own-${id}` } : {};
      const reply = await post(agent, sidecar.proxyUrl, id, headers);
      if (reply === `200 done ${id}`) done.add(id);
      else failures[reply] = (failures[reply] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, n) => runCaller(createRandom(seed, `caller ${String(n)}`))));
  await agent.destroy();
  await sidecar.drain();
  return {
    failures,
    failed: posts - done.size,
    executedTwice: [...upstream.executions.values()].filter((times) => times > 1).length,
    falselyDone: [...done].filter((id) => !upstream.executions.has(id)).length,
    counts: upstream.counts,
  };
}

async function post(agent: Agent, url: string, id: string, headers: Readonly<Record<string, string>>): Promise<string> {
  try {
    const body = JSON.stringify({ id, product: 'travel' });
    const response = await request(url, { dispatcher: agent, method: 'POST', headers, body });
    const text = await response.body.text();
    const [, code] = /"code":"([A-Z_]+)"/.exec(text) ?? [];
    const isOwn = text === `done ${id}`;
    return `${String(response.statusCode)} ${code ?? (isOwn ? text : 'of the upstream')}`;
  } catch {
    return 'cut';
  }
}

async function startKeyedSidecar(apiUrl: string, authUrl: string, isOn: boolean, random: Random) {
  const { id, secret } = newCredential();
  const loaded = loadConfig({
    env: {
      ...{ SIDECAR_BASE_URL: apiUrl, SIDECAR_AUTH_URL: authUrl, SIDECAR_CLIENT_ID: id, SIDECAR_CLIENT_SECRET: secret },
      ...{ SIDECAR_AUDIENCE: 'https://api.partner.example/', SIDECAR_RATE: '100000', SIDECAR_BURST: '10000' },
      ...{ SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' },
      SIDECAR_RETRY_IDEMPOTENCY_KEY_HEADER: isOn ? HEADER : '',
    },
  });
  if (!loaded.ok) throw new Error(formatProblems(loaded.problems));
  return startSidecar({
    config: { ...loaded.config, shutdown: { drainMs: 0, delayMs: 0 } },
    version: '0.0.0',
    log: createRecordingLog(),
    source: { loaded, load: undefined },
    random,
  });
}
