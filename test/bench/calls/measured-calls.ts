/** One request after another through a sidecar that records its calls, and the least calls of one. */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { call } from '../../support/calls.ts';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings } from '../../support/sidecar-process.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { waitUntil } from '../../support/until.ts';
import { startPlainUpstream, type PlainUpstream } from './plain-upstream.ts';
import { pickLeast, type RecordedCalls } from './recorded-calls.ts';
import { TracedSidecar } from './traced-sidecar.ts';

/** Within fifteen seconds, after which response times count as old, and with the warm-up within a batch of 64 log lines. */
const RECORDINGS = 5;
const WARM_UP_CALLS = 50;
/** Recorded calls, of which each has another before it, stay below a limit of ten in a second. */
const PAUSE_MS = 300;
const BODY = JSON.stringify({ product: 'travel', days: 14 });

/** A sidecar that is ready, and what it needs. */
export interface CallsFixture extends AsyncDisposable {
  readonly upstream: PlainUpstream;
  /** Sends one request and reads its response; each on a new connection when `agent` is absent. */
  send(method: 'GET' | 'POST', agent?: Agent): Promise<void>;
  /** Ends with `recordLeast`: until then the time that requests take does not count. */
  stopClock(): Promise<void>;
  /** The recording with the fewest calls: a batch of log lines may be full in one of the others. */
  recordLeast(method: 'GET' | 'POST'): Promise<RecordedCalls>;
}

/**
 * @param root the folder of the project whose src/ runs
 * @param limit of the upstream: calls in any second
 * @param settings besides the addresses and the credential. Default: none
 */
export async function startCallsFixture(
  root: string,
  limit: number,
  settings: (upstreamUrl: string, clientId: string) => Readonly<Record<string, string>> = () => ({}),
): Promise<CallsFixture> {
  await using started = new AsyncDisposableStack();
  const tokens = started.use(await startTokenServer());
  const upstream = started.use(await startPlainUpstream(limit));
  const credential = newCredential();
  const env = { ...baseSettings(upstream.url, tokens.url, credential), ...settings(upstream.url, credential.id) };
  const sidecar = started.use(await TracedSidecar.start(root, env));
  const agent = started.adopt(new Agent({ keepAlive: true, maxSockets: 1 }), (used) => used.destroy());
  await waitUntilReady(sidecar);
  const owned = started.move();
  const send = (method: 'GET' | 'POST', by?: Agent): Promise<void> => sendOne(sidecar.proxyUrl, method, by);
  return {
    upstream,
    send,
    stopClock: () => sidecar.stopClock(),
    async recordLeast(method) {
      // A wait for a permit would not end while the clock stands still.
      await send(method, agent);
      await sleep(PAUSE_MS);
      const recordings: RecordedCalls[] = [];
      for (let count = 0; count < RECORDINGS; count++) {
        recordings.push(await sidecar.record(() => send(method, agent)));
        await sleep(method === 'POST' ? PAUSE_MS : 0);
      }
      await sidecar.startClock();
      return pickLeast(recordings);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A warm GET that nothing holds up, with default settings. */
export async function recordWarmGet(root: string): Promise<RecordedCalls> {
  await using fixture = await startCallsFixture(root, Infinity);
  await fixture.stopClock();
  for (let sent = 0; sent < WARM_UP_CALLS; sent++) await fixture.send('GET');
  return await fixture.recordLeast('GET');
}

function sendOne(proxyUrl: string, method: 'GET' | 'POST', agent: Agent | undefined): Promise<void> {
  const headers = method === 'POST' ? { 'content-type': 'application/json', 'content-length': BODY.length } : {};
  return new Promise((resolve, reject) => {
    const sent = request(`${proxyUrl}/policies/1`, { method, headers, ...(agent && { agent }) }, (response) => {
      response.on('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the sidecar responded with ${String(response.statusCode)}`));
      });
      response.resume();
    });
    sent.on('error', reject);
    sent.end(method === 'POST' ? BODY : undefined);
  });
}

function waitUntilReady({ adminUrl }: TracedSidecar): Promise<void> {
  return waitUntil(async () => (await call(`${adminUrl}/readyz`)).status === 200, 'the sidecar is ready');
}
