/** Against a rate limiter that we did not write: nginx `limit_req` without burst, the strictest there is. */
import { describe, expect, it } from 'vitest';
import { post, callConcurrently } from '../support/calls.ts';
import { startNginx } from '../support/nginx.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';

describe('nginx limit_req rate=10r/s with status 429', () => {
  it('200 POSTs at once with auto all succeed, with intact bodies', async () => {
    await using tokens = await startTokenServer();
    await using upstream = await startRecordingUpstream();
    await using nginx = await startNginx({ rate: '10r/s', upstream: upstream.url });
    const longWaits = { SIDECAR_QUEUE_TIMEOUT_MS: '100000', SIDECAR_DEADLINE_MS: '110000' };
    const env = { ...baseSettings(nginx.url, tokens.url, newCredential()), ...longWaits };
    await using sidecar = await startSidecar({ name: 'nginx', env });
    await waitUntilReady(sidecar);

    const startedAt = performance.now();
    const responses = await callConcurrently(200, (index) =>
      post(`${sidecar.proxyUrl}/quotes`, { index, text: `body ${String(index)} `.repeat(50) }),
    );
    const seconds = (performance.now() - startedAt) / 1000;

    // nginx writes the line of a request after its response.
    await waitUntil(
      () => nginx.requests().filter(({ status }) => status === 200).length >= 200,
      'nginx has logged all',
    );
    const refused = nginx.requests().filter(({ status }) => status === 429).length;
    console.info(`nginx 10r/s, 200 POSTs: ${seconds.toFixed(1)} s, ${refused} responses of 429`);
    expect(responses.map(({ status }) => status)).toEqual(Array(200).fill(200));
    for (const [index, { text }] of responses.entries())
      expect(JSON.parse(text)).toEqual({ index, text: `body ${String(index)} `.repeat(50) });
    expect(upstream.requests).toHaveLength(200);
    expect(nginx.requests()).toHaveLength(200 + refused);
    // 20 s are the least that it takes.
    expect(seconds).toBeLessThan(100);
  });
});

describe('nginx limit_req rate=10r/s with its default status, a bare 503', () => {
  /** How many of 60 POSTs at once get each status, the last of so many times, and how many refusals were counted. */
  async function callAtOnce(name: string, own: Readonly<Record<string, string>>, times = 1) {
    await using tokens = await startTokenServer();
    await using upstream = await startRecordingUpstream();
    await using nginx = await startNginx({ rate: '10r/s', refusal: 'own', upstream: upstream.url });
    const env = { ...baseSettings(nginx.url, tokens.url, newCredential()), ...own };
    await using sidecar = await startSidecar({ name, env });
    await waitUntilReady(sidecar);
    let responses: Awaited<ReturnType<typeof post>>[] = [];
    for (let time = 0; time < times; time++)
      responses = await callConcurrently(60, (index) => post(`${sidecar.proxyUrl}/quotes`, { index }));
    await waitUntil(() => nginx.requests().length >= upstream.requests.length, 'nginx has logged all');
    const metrics = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
    return {
      accepted: responses.filter(({ status }) => status === 200).length,
      failed: responses.filter(({ status }) => status === 503).length,
      atUpstream: upstream.requests.length,
      counted: Number(/^bearer_sidecar_rate_limited_total\{route="default"\} (\d+)$/m.exec(metrics)?.[1]),
    };
  }

  it('60 POSTs at once all succeed where the status is configured', async () => {
    const { accepted, atUpstream, counted } = await callAtOnce('nginx-503', {
      SIDECAR_THROTTLE_REFUSALS: '[{"status":503}]',
    });
    console.info(`nginx 10r/s, 60 POSTs, 503 configured: ${counted} refusals`);
    expect([accepted, atUpstream]).toEqual([60, 60]);
    expect(counted).toBeGreaterThan(0);
  });

  it('and most of them fail where it is not and nothing is assumed, since a 503 may be an outage', async () => {
    const env = { SIDECAR_THROTTLE_ASSUME_REFUSALS: 'false' };
    const { accepted, failed, counted } = await callAtOnce('nginx-503-bare', env);
    expect(accepted + failed).toBe(60);
    expect(failed).toBeGreaterThan(30);
    expect(counted).toBe(0);
  });

  it('and calls are paced where it is assumed: 60 POSTs for the second time fail less', async () => {
    const { accepted, failed, counted } = await callAtOnce('nginx-503-assumed', {}, 2);
    console.info(`nginx 10r/s, 60 POSTs for the second time, a bare 503 assumed: ${failed} refused to the client`);
    expect(accepted + failed).toBe(60);
    expect(failed).toBeLessThan(40);
    expect(counted).toBe(0);
  });
});
