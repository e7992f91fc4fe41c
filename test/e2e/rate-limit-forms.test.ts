/** The forms in which a limiter that we did not write says that one is too fast. */
import { describe, expect, it } from 'vitest';
import { post, callConcurrently } from '../support/calls.ts';
import { startNginx } from '../support/nginx.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';

describe('nginx limit_req rate=5r/s with status 403 and Retry-After', () => {
  it('is waited out for POSTs like a 429, and its header fields are logged', async () => {
    await using tokens = await startTokenServer();
    await using upstream = await startRecordingUpstream();
    const refusal = { status: 403, retryAfter: '1' };
    await using nginx = await startNginx({ rate: '5r/s', refusal, upstream: upstream.url });
    const env = baseSettings(nginx.url, tokens.url, newCredential());
    await using sidecar = await startSidecar({ name: 'nginx-403', env });
    await waitUntilReady(sidecar);

    const responses = await callConcurrently(20, (index) => post(`${sidecar.proxyUrl}/quotes`, { index }));
    const refused = nginx.requests().filter(({ status }) => status === 403).length;
    console.info(`nginx 5r/s, 20 POSTs: ${refused} responses of 403 with Retry-After`);
    expect(responses.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(refused).toBeGreaterThan(0);
    expect(upstream.requests).toHaveLength(20);
    await sidecar.stop();
    const line = sidecar
      .stdout()
      .split('\n')
      .find((text) => text.includes('"rate limited by the upstream"'));
    expect(JSON.parse(line ?? '')).toMatchObject({ level: 'warn', status: 403, rateLimitFields: { 'retry-after': 1 } });
  });
});
