/** Secrets that rotate under load: an authorization server that we did not write, in a process of its own, forgets the old one. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { expect, it } from 'vitest';
import { post } from '../support/calls.ts';
import { mountSecret } from '../support/mounted-secret.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { AUDIENCE, CLIENT_ID, SCOPE } from '../support/rotating-client.ts';
import { newSecret, startRotatingServer } from '../support/rotating-server.ts';
import { startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import { waitUntil } from '../support/until.ts';

const ROTATIONS = 10;
const EVERY_MS = 10;

/** Takes what the authorization server has signed and what has not expired, and nothing else. */
function verifying(issuer: string): RespondTo {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  /** When each token expires, epoch milliseconds; 0 of one that is not good. A signature is verified once. */
  const expiries = new Map<string, Promise<number>>();
  const verify = (bearer: string): Promise<number> =>
    jwtVerify(bearer, keys, { issuer, audience: AUDIENCE }).then(
      ({ payload }) => (payload.exp ?? 0) * 1000,
      () => 0,
    );
  return async (request, response) => {
    const bearer = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    const expiry = expiries.get(bearer) ?? verify(bearer);
    expiries.set(bearer, expiry);
    response.writeHead(Date.now() < (await expiry) ? 200 : 401).end();
  };
}

/** 100 calls a second until it is stopped. */
function startLoad(url: string): { stop(): Promise<Map<number | string, number>>; readonly made: () => number } {
  const outcomes = new Map<number | string, number>();
  const calls: Promise<void>[] = [];
  const note = (outcome: number | string): void => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  const startedAt = performance.now();
  const timer = setInterval(() => {
    while (calls.length * EVERY_MS < performance.now() - startedAt)
      calls.push(
        post(`${url}/policies`, {}).then(
          ({ status }) => note(status),
          (error: unknown) => note(String(error)),
        ),
      );
  }, EVERY_MS);
  return {
    made: () => calls.length,
    async stop() {
      clearInterval(timer);
      await Promise.all(calls);
      return outcomes;
    },
  };
}

it('10 rotations under 100 requests a second, a wrong secret among them: no request fails', async () => {
  await using server = await startRotatingServer();
  await using mounted = await mountSecret({ id: CLIENT_ID, secret: server.secret() });
  await using upstream = await startRecordingUpstream(verifying(server.url));
  const env = {
    SIDECAR_BASE_URL: upstream.url,
    SIDECAR_AUTH_URL: server.url,
    SIDECAR_CLIENT_ID_FILE: mounted.path('id'),
    SIDECAR_CLIENT_SECRET_FILE: mounted.path('secret'),
    SIDECAR_AUDIENCE: AUDIENCE,
    SIDECAR_SCOPE: SCOPE,
    SIDECAR_RATE: '5000',
    SIDECAR_BURST: '500',
    // A machine with other work may take longer for a token than the old one lives.
    SIDECAR_QUEUE_MAX: '10000',
  };
  await using sidecar = await startSidecar({ name: 'rotation', env });
  await waitUntilReady(sidecar);

  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
    const line = text.split('\n').find((one) => one.startsWith(`bearer_sidecar_${name} `));
    return Number(line?.split(' ').at(-1));
  };
  const status = async (): Promise<{ degraded: string[] }> =>
    (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as { degraded: string[] };
  const reaches = (name: string, value: number): Promise<void> =>
    waitUntil(async () => (await metric(name)) >= value, `${name} reaches ${String(value)}`);
  const rotated = 'token_invalidations_total{credential="default",reason="rotated"}';
  const failed = 'credential_rotation_failures_total{credential="default"}';

  const load = startLoad(sidecar.proxyUrl);
  for (let rotation = 1; rotation <= ROTATIONS; rotation++) {
    const secret = await server.rotate();
    await mounted.replace({ id: CLIENT_ID, secret: `${secret}\n` });
    await reaches(rotated, rotation);
    if (rotation !== ROTATIONS / 2) continue;

    await mounted.replace({ id: CLIENT_ID, secret: newSecret() });
    await reaches(failed, 1);
    expect((await status()).degraded).toEqual([expect.stringMatching(/refused.*invalid_client.*stay in use/)]);
    const grantsBefore = server.granted.length;
    // Longer than a token lives: the older secret goes on renewing it.
    await sleep(8_000);
    await waitUntil(() => server.granted.length > grantsBefore, 'a token by the older secret');
    expect(await (await fetch(`${sidecar.adminUrl}/readyz`)).json()).toMatchObject({ ready: true });
  }
  const outcomes = await load.stop();

  expect(Object.fromEntries(outcomes)).toEqual({ 200: load.made() });
  expect(load.made()).toBeGreaterThan(500);
  expect(await metric(rotated)).toBe(ROTATIONS);
  expect(await metric(failed)).toBe(1);
  expect((await status()).degraded).toEqual([]);
  expect(server.refused).toEqual(['invalid_client']);
});
