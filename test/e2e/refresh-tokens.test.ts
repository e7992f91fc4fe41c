/** Servers that replace the refresh token at each use, and the real process through restarts, kills and reloads. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import Provider from 'oidc-provider';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { call } from '../support/calls.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { baseSettings, spawnSidecar, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { RunningSidecar } from '../support/sidecar-process.ts';
import { waitUntil } from '../support/until.ts';

const CLIENT = { id: 'client-of-the-tests', secret: 'secret-of-the-tests-0123456789' };
const LIFETIME_S = 4;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refresh-tokens-'));
});
afterEach(() => rm(folder, { recursive: true, maxRetries: 5 }));

interface StartedServer extends AsyncDisposable {
  readonly url: string;
  /** The refresh token of a new grant. */
  readonly authorize: () => Promise<string>;
  /** Refresh tokens that were accepted, and those that were not. */
  readonly accepted: readonly string[];
  readonly refused: readonly string[];
}

/** Takes each refresh token once; a second use ends the grant. */
async function startStrictServer(): Promise<StartedServer> {
  let current = 'refresh-token-of-the-grant-0';
  const accepted: string[] = [];
  const refused: string[] = [];
  const recording = await startRecordingUpstream((request, response) => {
    const sent = new URLSearchParams(request.body.toString()).get('refresh_token') ?? '';
    const isCurrent = sent === current;
    (isCurrent ? accepted : refused).push(sent);
    current = isCurrent ? `refresh-token-of-the-grant-${String(accepted.length)}` : 'revoked';
    const grant = {
      access_token: `access-token-${String(accepted.length)}`,
      expires_in: LIFETIME_S,
      refresh_token: current,
    };
    // Echoes what it knows where texts are shown.
    const scope = `a ${current}`;
    const error = { error: 'invalid_grant', error_description: `not ${sent}` };
    response.writeHead(isCurrent ? 200 : 400, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(isCurrent ? { ...grant, token_type: 'Bearer', scope } : error));
  });
  return {
    url: recording.url,
    authorize: () => Promise.resolve((current = `another-grant-${String(accepted.length)}-of-a-person`)),
    accepted,
    refused,
    [Symbol.asyncDispose]: () => recording[Symbol.asyncDispose](),
  };
}

async function startOidcProvider(): Promise<StartedServer> {
  const server = createServer();
  const url = await listenOnLoopback(server);
  const accepted: string[] = [];
  const refused: string[] = [];
  const provider = new Provider(url, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        grant_types: ['refresh_token', 'authorization_code'],
        redirect_uris: ['https://app.example/'],
        response_types: ['code'],
        scope: 'openid offline_access',
      },
    ],
    routes: { token: '/oauth/token' },
    rotateRefreshToken: true,
    findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    ttl: { AccessToken: LIFETIME_S, RefreshToken: 3600, Grant: 3600, IdToken: 60 },
    features: { devInteractions: { enabled: false } },
  });
  provider.on('grant.success', () => accepted.push('one'));
  provider.on('grant.error', (_context, { message }) => refused.push(message));
  server.on('request', provider.callback() as never);
  const authorize = async (): Promise<string> => {
    const grant = new provider.Grant({ clientId: CLIENT.id, accountId: 'person' });
    grant.addOIDCScope('openid offline_access');
    const grantId = await grant.save();
    const client = await provider.Client.find(CLIENT.id);
    const fields = { accountId: 'person', grantId, client, scope: 'openid offline_access', gty: 'authorization_code' };
    return new provider.RefreshToken(fields as never).save();
  };
  return { url, authorize, accepted, refused, [Symbol.asyncDispose]: () => closeServer(server) };
}

const SERVERS: readonly (readonly [string, () => Promise<StartedServer>])[] = [
  ['a strict server', startStrictServer],
  ['oidc-provider', startOidcProvider],
];

function settingsOf(server: StartedServer, refreshToken: string): Record<string, string> {
  return {
    ...baseSettings('http://127.0.0.1:1', server.url, CLIENT),
    SIDECAR_AUDIENCE: '',
    SIDECAR_AUTH_GRANT_TYPE: 'refresh_token',
    SIDECAR_AUTH_EXTRA_PARAMETERS: JSON.stringify({ refresh_token: refreshToken }),
  };
}

async function start(
  server: StartedServer,
  refreshToken: string,
  env: Record<string, string>,
): Promise<RunningSidecar> {
  const settings = { ...settingsOf(server, refreshToken), SIDECAR_LOG_LEVEL: 'debug', ...env };
  const sidecar = await startSidecar({ name: 'refresh-tokens', env: settings });
  await waitUntilReady(sidecar);
  return sidecar;
}

const reaches = (server: StartedServer, count: number): Promise<void> =>
  waitUntil(() => server.accepted.length >= count, `${String(count)} renewals`);

async function statusOf({ adminUrl }: RunningSidecar): Promise<{ text: string; degraded: string[] }> {
  const text = (await call(`${adminUrl}/status`)).text;
  return { text, degraded: (JSON.parse(text) as { degraded: string[] }).degraded };
}

test.each(SERVERS)('%s: restarts, a kill and a reload use each refresh token once', async (_name, startServer) => {
  await using server = await startServer();
  const config = join(folder, 'config.yaml');
  await writeFile(config, 'log: { level: debug }\n');
  const env = { SIDECAR_AUTH_CACHE_FILE: join(folder, 'token'), SIDECAR_CONFIG: config };
  const first = await server.authorize();
  const one = await start(server, first, env);
  await reaches(server, 2);
  process.kill(one.pid, 'SIGHUP');
  await one.waitForLine(/configuration reloaded/);
  await reaches(server, 3);
  expect((await statusOf(one)).degraded).toEqual([]);
  await one.stop('SIGTERM');
  const two = await start(server, first, env);
  await reaches(server, 4);
  // A kill between a response and its write would lose the new one.
  await sleep(500);
  await two.stop('SIGKILL');
  const before = server.accepted.length;
  await using three = await start(server, first, env);
  await reaches(server, before + 1);
  expect(server.refused).toEqual([]);
  const second = await server.authorize();
  await three.stop();
  await using four = await start(server, second, env);
  await reaches(server, server.accepted.length + 1);
  expect(server.refused).toEqual([]);
  const shown =
    [one, two, three, four].map(({ stdout, stderr }) => stdout() + stderr()).join('') + (await statusOf(four)).text;
  for (const secret of [first, second, ...server.accepted.filter((text) => text !== 'one')])
    expect(shown).not.toContain(secret);
  expect(await readFile(env.SIDECAR_AUTH_CACHE_FILE, 'utf8')).toMatch(/^bst3\.[\w-]+\nbsr1\.[\w-]+\n$/);
});

test('a client without a secret keeps it too', async () => {
  await using server = await startStrictServer();
  const env = {
    SIDECAR_AUTH_METHOD: 'none',
    SIDECAR_CLIENT_SECRET: '',
    SIDECAR_AUTH_CACHE_FILE: join(folder, 'token'),
  };
  const token = await server.authorize();
  const one = await start(server, token, env);
  await reaches(server, 2);
  await one.stop();
  await using two = await start(server, token, env);
  await reaches(server, server.accepted.length + 1);
  expect(server.refused).toEqual([]);
  expect(two.stdout()).not.toContain('another-grant');
});

test('without a file one warning, the status and the metric say what a restart will do', async () => {
  await using server = await startStrictServer();
  await using sidecar = await start(server, await server.authorize(), {});
  await reaches(server, 3);
  const text = 'auth.cacheFile is not set: after a restart the configured one is refused';
  expect((await statusOf(sidecar)).degraded).toEqual([expect.stringContaining(text)]);
  expect(sidecar.stdout().split(text)).toHaveLength(2);
  const metrics = (await call(`${sidecar.adminUrl}/metrics`)).text;
  expect(metrics).toContain('bearer_sidecar_refresh_token_unkept{credential="default"} 1');
  expect(server.refused).toEqual([]);
});

test('check sends nothing where a newer one is kept, and says when its own request has used one up', async () => {
  await using server = await startStrictServer();
  const env = { SIDECAR_AUTH_CACHE_FILE: join(folder, 'token') };
  const token = await server.authorize();
  const sidecar = await start(server, token, env);
  await sidecar.stop();
  const { length } = server.accepted;
  const kept = spawnSidecar({ name: 'check-kept', args: ['check'], env: { ...settingsOf(server, token), ...env } });
  await kept.exit;
  expect(kept.stdout()).toContain('keeps a newer refresh token');
  expect([server.accepted.length, server.refused]).toEqual([length, []]);
  const other = settingsOf(server, await server.authorize());
  const used = spawnSidecar({ name: 'check-used', args: ['check'], env: other });
  await used.exit;
  expect(used.stdout()).toContain('the configured one is used up now');
  expect(used.stdout() + used.stderr()).not.toContain('refresh-token-of-the-grant');
});
