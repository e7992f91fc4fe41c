/** A token endpoint that is away, seen from outside: what callers and probes notice, and what a restart keeps. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { call } from '../support/calls.ts';
import { echo, startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { RunningSidecar } from '../support/sidecar-process.ts';
import { waitUntil } from '../support/until.ts';

type Mode = 'works' | 'down' | 'html' | 'empty';

/** A token endpoint that can be switched while it runs. */
async function startSwitch(expiresIn: number) {
  const control = { mode: 'works' as Mode, given: 0 };
  const respond: RespondTo = (_request, response) => {
    if (control.mode === 'down') response.writeHead(503).end('<h1>Service Unavailable</h1>');
    else if (control.mode === 'html') response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Sign in</h1>');
    else if (control.mode === 'empty') response.writeHead(200).end();
    else {
      const value = `tok-${String(++control.given)}-${String(process.pid)}-of-the-outage`;
      registerSecret('an access token', value);
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ access_token: value, token_type: 'Bearer', expires_in: expiresIn }));
    }
  };
  const server = await startRecordingUpstream(respond);
  return Object.assign(control, {
    url: server.url,
    server,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  });
}

async function probe(sidecar: RunningSidecar, path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${sidecar.adminUrl}${path}`);
  return { status: response.status, text: await response.text() };
}

it.each<Mode>(['down', 'html', 'empty'])(
  'a restart while the token endpoint is %s goes on with the token of the run before',
  async (mode) => {
    const folder = await mkdtemp(join(tmpdir(), 'token-cache-'));
    const cacheFile = join(folder, 'token');
    const credential = newCredential();
    await using tokens = await startSwitch(3600);
    await using upstream = await startRecordingUpstream();
    const env = { ...baseSettings(upstream.url, tokens.url, credential), SIDECAR_AUTH_CACHE_FILE: cacheFile };
    {
      await using first = await startSidecar({ name: `token-cache-${mode}`, env });
      await waitUntilReady(first);
      await call(`${first.proxyUrl}/before`);
      // It is written beside the requests; what comes next is no chance to tidy up.
      await waitUntil(() => existsSync(cacheFile), 'the token kept');
      await first.stop('SIGKILL');
    }
    expect((await stat(cacheFile)).mode & 0o777).toBe(0o600);
    const kept = await readFile(cacheFile, 'utf8');
    for (const secret of [credential.secret, 'tok-1']) expect(kept).not.toContain(secret);

    tokens.mode = mode;
    await using second = await startSidecar({ name: `token-cache-${mode}`, env });
    await waitUntilReady(second);
    expect(await probe(second, '/startupz')).toMatchObject({ status: 200 });
    const readyz = await probe(second, '/readyz');
    expect(readyz.status).toBe(200);
    expect(readyz.text).toMatch(/token valid for 3[45]\d\d s/);
    expect((await call(`${second.proxyUrl}/after`)).status).toBe(200);
    expect(upstream.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array(2).fill(expect.stringContaining('tok-1')),
    );
    expect(tokens.server.requests).toHaveLength(1);
    await rm(folder, { recursive: true });
  },
);

it('a kept token that the upstream refuses is replaced, and is not what the next run begins with', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'token-cache-'));
  const refuseTheFirst: RespondTo = (request, response, index) => {
    if (request.headers.authorization?.includes('tok-1-') === true) response.writeHead(401).end();
    else void echo(request, response, index);
  };
  await using tokens = await startSwitch(3600);
  await using upstream = await startRecordingUpstream(refuseTheFirst);
  const env = {
    ...baseSettings(upstream.url, tokens.url, newCredential()),
    SIDECAR_AUTH_CACHE_FILE: join(folder, 'token'),
  };
  for (const run of [1, 2, 3]) {
    await using sidecar = await startSidecar({ name: 'token-cache-refused', env });
    await waitUntilReady(sidecar);
    if (run > 1) expect((await call(`${sidecar.proxyUrl}/`)).status).toBe(200);
    await sidecar.stop();
  }
  // Of the three runs the first asked, the second had to, and the third went on with that.
  expect(tokens.given).toBe(2);
  await rm(folder, { recursive: true });
});

it('an outage that outlives the token: refused meanwhile, few requests, ready again soon after its end without a call', async () => {
  await using tokens = await startSwitch(8);
  await using upstream = await startRecordingUpstream();
  const env = baseSettings(upstream.url, tokens.url, newCredential());
  await using sidecar = await startSidecar({ name: 'token-outage', env });
  await waitUntilReady(sidecar);
  tokens.mode = 'down';
  const statuses = new Set<number>();
  const requestsBefore = tokens.server.requests.length;
  const endsAt = performance.now() + 18_000;
  while (performance.now() < endsAt) {
    statuses.add((await call(`${sidecar.proxyUrl}/`)).status);
    await sleep(100);
  }
  expect([...statuses]).toEqual([200, 503]);
  // About ten; one for each call would be a hundred.
  expect(tokens.server.requests.length - requestsBefore).toBeLessThan(30);
  expect(JSON.parse((await probe(sidecar, '/status')).text)).toMatchObject({
    degraded: [expect.stringContaining('keeps failing')],
  });

  tokens.mode = 'works';
  await waitUntil(async () => (await probe(sidecar, '/readyz')).status === 200, 'ready again');
  expect((await call(`${sidecar.proxyUrl}/`)).status).toBe(200);
});
