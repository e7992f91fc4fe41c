/** `throttle.mode: observe` before a limiter that we did not write, beside the limiter alone; and switched under load. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { call } from '../support/calls.ts';
import { writeConfigFile } from '../support/config-file.ts';
import { startNginx } from '../support/nginx.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';

const CALLS = 60;
/** By how much the median may be longer than without a sidecar, on a machine that may be slow. */
const SLOWER_MS = 1000;

interface Response {
  readonly status: number;
  readonly text: string;
  readonly tookMs: number;
}

/** Calls at even intervals, whatever becomes of them. */
async function offer(url: string, count: number, intervalMs: number): Promise<Response[]> {
  const calls: Promise<Response>[] = [];
  for (let index = 0; index < count; index++) {
    const sentAt = performance.now();
    const body = `body ${String(index)} `.repeat(300);
    calls.push(
      call(`${url}/quotes`, { method: 'POST', body }).then(({ status, text }) => ({
        status,
        text,
        tookMs: performance.now() - sentAt,
      })),
    );
    if (intervalMs > 0) await sleep(intervalMs);
  }
  return Promise.all(calls);
}

function medianMs(responses: readonly Response[]): number {
  return responses.map(({ tookMs }) => tookMs).sort((one, other) => one - other)[responses.length >> 1] ?? NaN;
}

async function readFigures(adminUrl: string) {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const read = (name: string): number =>
    Number(new RegExp(`^bearer_sidecar_${name}\\{route="default"\\} (\\S+)$`, 'm').exec(text)?.[1]);
  return {
    permits: read('would_permits_total'),
    waits: read('would_wait_seconds_count'),
    waitSeconds: read('would_wait_seconds_sum'),
    waitedSeconds: read('queue_wait_seconds_sum'),
    refuse: read('would_refuse_total'),
    rateLimited: read('rate_limited_total'),
  };
}

describe('observing', () => {
  it('delays and repeats no call, passes refusals on, and counts what would have waited', async () => {
    await using tokens = await startTokenServer();
    await using upstream = await startRecordingUpstream();
    await using nginx = await startNginx({ rate: '1r/s', burst: 5, upstream: upstream.url });
    const own = {
      SIDECAR_THROTTLE_MODE: 'observe',
      SIDECAR_THROTTLE_LIMITS: JSON.stringify([{ calls: 10, per: '2s' }]),
      SIDECAR_MAX_IN_FLIGHT: '2',
      SIDECAR_QUEUE_TIMEOUT_MS: '3000',
    };
    const env = { ...baseSettings(nginx.url, tokens.url, newCredential()), ...own };
    await using sidecar = await startSidecar({ name: 'observe', env });
    await waitUntilReady(sidecar);

    const plain = await offer(nginx.url, CALLS, 0);
    // The burst of nginx is free again.
    await sleep(6000);
    const [before, already] = [nginx.requests().length, upstream.requests.length];
    const observed = await offer(sidecar.proxyUrl, CALLS, 0);

    const count = (responses: readonly Response[], status: number): number =>
      responses.filter((response) => response.status === status).length;
    await waitUntil(() => nginx.requests().length >= before + CALLS, 'nginx has logged all');
    // Each call reached nginx once, and none more.
    expect(nginx.requests()).toHaveLength(before + CALLS);
    expect(upstream.requests).toHaveLength(already + count(observed, 200));
    expect(count(observed, 200) + count(observed, 429)).toBe(CALLS);
    expect(Math.abs(count(observed, 429) - count(plain, 429))).toBeLessThan(CALLS * 0.2);
    expect(count(observed, 429)).toBeGreaterThan(10);
    for (const [index, { status, text }] of observed.entries()) {
      if (status === 200) expect(text).toBe(`body ${String(index)} `.repeat(300));
      else expect(text).toBe(plain.find((response) => response.status === status)?.text);
    }
    expect(medianMs(observed)).toBeLessThan(medianMs(plain) + SLOWER_MS);
    await waitUntil(async () => {
      const { permits, refuse } = await readFigures(sidecar.adminUrl);
      return permits + refuse === CALLS;
    }, 'each call has had its turn in the rehearsal');
    const figures = await readFigures(sidecar.adminUrl);
    console.info(`observed: ${JSON.stringify(figures)}, 429: ${count(observed, 429)}, plain ${count(plain, 429)}`);
    expect(figures.rateLimited).toBe(count(observed, 429));
    expect(figures.waitedSeconds).toBe(0);
    expect(figures.waitSeconds).toBeGreaterThan(5);
    expect(figures.refuse).toBeGreaterThan(10);
    const page = await (await fetch(sidecar.adminUrl)).text();
    expect(page).toContain('observes: limits are not enforced');
    expect((await sidecar.stop()).code).toBe(0);
    expect(sidecar.stdout()).toContain('limits were observed and not enforced');
  }, 60_000);

  it('loses no call when it is switched on and off under load', async () => {
    await using tokens = await startTokenServer();
    await using upstream = await startRecordingUpstream();
    const write = (mode: string): string => `throttle:\n  mode: ${mode}\n  limits: [{ calls: 20, per: 1s }]\n`;
    await using file = await writeConfigFile(write('enforce'));
    const env = { ...baseSettings(upstream.url, tokens.url, newCredential()), SIDECAR_CONFIG: file.path };
    await using sidecar = await startSidecar({ name: 'observe-switch', env });
    await waitUntilReady(sidecar);
    const responses = offer(sidecar.proxyUrl, 200, 20);
    for (const [index, mode] of ['observe', 'enforce', 'observe'].entries()) {
      await sleep(1000);
      await file.replace(write(mode));
      process.kill(sidecar.pid, 'SIGHUP');
      const hasReloaded = (): boolean => sidecar.stdout().split('configuration reloaded').length > index + 1;
      await waitUntil(hasReloaded, `${mode} is in force`);
    }
    const statuses = (await responses).map(({ status }) => status);
    expect(statuses).toEqual(Array(200).fill(200));
    expect(upstream.requests).toHaveLength(200);
    const { throttle } = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as {
      throttle: { queued: number; observed: { certainty: string } };
    };
    expect(throttle).toMatchObject({ queued: 0, observed: { certainty: 'exact' } });
  }, 60_000);
});
