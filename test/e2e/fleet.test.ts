/** Replicas that share a token over a real Redis, each a process of its own: started together, refused together, left alone. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readSamples } from '../telemetry/metrics/exposition.ts';
import { call, post, callConcurrently } from '../support/calls.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo } from '../support/recording-upstream.ts';
import { startRedis } from '../support/redis.ts';
import type { Redis } from '../support/redis.ts';
import { roundsOf } from '../support/rounds.ts';
import { newCredential, registerSecret } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { RunningSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';

const PASSWORD = 'a-password-of-redis';
registerSecret('the password of Redis', PASSWORD);
// Each process that is started is ended with this one.
process.setMaxListeners(process.getMaxListeners() + 16);

const COLD_STARTS = roundsOf({ check: 8, soak: 16 });
/** Processes that start together take their time on two cores. */

interface FleetOptions {
  readonly name: string;
  readonly replicas: number;
  readonly tokenDelayMs?: number;
  /** Every token waits for it. */
  readonly tokensHeld?: Promise<unknown>;
  readonly response?: RespondTo;
  readonly env?: Readonly<Record<string, string>>;
}

/** Servers for replicas that are started by the test; all ends with it. */
async function startServers({ name, tokenDelayMs = 300, tokensHeld, response, env }: Omit<FleetOptions, 'replicas'>) {
  const redis = await startRedis({
    args: ['--requirepass', PASSWORD],
    url: (port) => `redis://:${PASSWORD}@127.0.0.1:${port}`,
  });
  const tokens = await startTokenServer({ delayMs: tokenDelayMs, ...(tokensHeld && { waitsFor: tokensHeld }) });
  const upstream = await startRecordingUpstream(response);
  const credential = newCredential();
  const replicas: RunningSidecar[] = [];
  onTestFinished(async () => {
    await Promise.all(replicas.map((replica) => replica.stop('SIGKILL')));
    await Promise.all([tokens[Symbol.asyncDispose](), upstream[Symbol.asyncDispose]()]);
  });
  const start = async (count: number): Promise<void> => {
    const from = replicas.length;
    await callConcurrently(count, async (index) => {
      const all = {
        ...baseSettings(upstream.url, tokens.url, credential),
        SIDECAR_RATE: '5000',
        SIDECAR_BURST: '500',
        SIDECAR_REDIS_URL: redis.url,
        ...env,
      };
      const replica = await startSidecar({
        name: `fleet-${name}-${from + index}`,
        env: all,
      });
      replicas.push(replica);
    });
  };
  return { redis, tokens, upstream, credential, replicas, start };
}

async function startFleet(options: FleetOptions) {
  // A busy machine would have some of them go on alone.
  const servers = await startServers({ ...options, env: { SIDECAR_FLEET_TIMEOUT_MS: '1000' } });
  await servers.start(options.replicas);
  await Promise.all(servers.replicas.map((replica) => waitUntilReady(replica)));
  return servers;
}

async function sum(replicas: readonly RunningSidecar[], sample: string): Promise<number> {
  const values = replicas.map(async ({ adminUrl }) => {
    const text = (await call(`${adminUrl}/metrics`)).text;
    return readSamples(text).get(`bearer_sidecar_${sample}`) ?? Number.NaN;
  });
  return (await Promise.all(values)).reduce((total, value) => total + value, 0);
}

function untilJoined(replicas: readonly RunningSidecar[], count: number): Promise<void> {
  return waitUntil(async () => (await sum(replicas, 'fleet_connected')) === count, 'the replicas joined');
}

describe('many cold starts at once', () => {
  it('share one token request, and Redis sees neither token nor secret', async () => {
    const { redis, tokens, replicas, credential } = await startFleet({ name: 'cold', replicas: COLD_STARTS });
    expect(tokens.requests).toHaveLength(1);
    const responses = await callConcurrently(COLD_STARTS, (index) =>
      post(`${replicas[index]!.proxyUrl}/things`, { index }),
    );
    expect(responses.map(({ status }) => status)).toEqual(Array(COLD_STARTS).fill(200));
    expect(tokens.requests).toHaveLength(1);
    expect(await sum(replicas, 'token_requests_total{credential="default",outcome="ok"}')).toBe(1);
    expect(await sum(replicas, 'fleet_tokens_total{credential="default",outcome="ok"}')).toBe(COLD_STARTS - 1);
    expect(await sum(replicas, 'fleet_connected')).toBe(COLD_STARTS);

    const kept = await redis.dump();
    expect(kept).toMatch(/^bearer-sidecar:token:[\w-]{22} hash \[/m);
    for (const secret of [tokens.issued[0]!.value, credential.secret, credential.id])
      for (const form of ['utf8', 'base64', 'base64url', 'hex'] as const)
        expect(kept).not.toContain(Buffer.from(secret).toString(form).replace(/=+$/, ''));

    const status = (await call(`${replicas[0]!.adminUrl}/status`)).text;
    expect(JSON.parse(status)).toMatchObject({ fleet: { connected: true, fault: null } });
    expect(status).not.toContain(PASSWORD);
  });
});

describe('a 401 at four replicas at once', () => {
  it('causes one refresh, and every call succeeds', async () => {
    let refused: string | undefined;
    const { tokens, replicas } = await startFleet({
      name: 'refused',
      replicas: 4,
      response: (request, response) => {
        refused ??= request.headers.authorization;
        response.writeHead(request.headers.authorization === refused ? 401 : 200).end();
      },
    });
    const responses = await callConcurrently(80, (index) => post(`${replicas[index % 4]!.proxyUrl}/things`, { index }));
    expect(responses.map(({ status }) => status)).toEqual(Array(80).fill(200));
    expect(tokens.requests).toHaveLength(2);
  });
});

describe('Redis', () => {
  it('killed during the one token request: each replica asks for itself, and joins again', async () => {
    const { promise: tokensHeld, resolve: giveTokens } = Promise.withResolvers<undefined>();
    const { redis, tokens, replicas, start } = await startServers({
      name: 'killed',
      tokenDelayMs: 0,
      tokensHeld,
      env: { SIDECAR_AUTH_TIMEOUT_MS: '60000' },
    });
    await start(6);
    await untilJoined(replicas, 6);
    expect(tokens.issued).toHaveLength(0);
    expect(tokens.requests).toHaveLength(1);
    await redis.kill();
    await waitUntil(() => tokens.requests.length === 6, 'each asked for itself');
    giveTokens(undefined);
    await Promise.all(replicas.map((replica) => waitUntilReady(replica)));
    expect(tokens.requests).toHaveLength(6);
    const responses = await callConcurrently(6, (index) => call(`${replicas[index]!.proxyUrl}/things`));
    expect(responses.map(({ status }) => status)).toEqual(Array(6).fill(200));
    expect(await sum(replicas, 'fleet_connected')).toBe(0);

    await redis.restart();
    await untilJoined(replicas, 6);
    // Its last lines are written when it ends.
    await replicas[0]!.stop();
    const lines = replicas[0]!.stdout().split('\n');
    expect(lines.filter((line) => line.includes('"msg":"fleet joined"'))).toHaveLength(2);
    expect(lines.filter((line) => line.includes('fleet lost')).length).toBeLessThanOrEqual(2);
  });

  it.each([
    ['that is away', (redis: Redis) => redis.kill()],
    ['that hangs', async (redis: Redis) => redis.pause()],
  ])('%s holds up neither the start nor the end', async (_, spoil) => {
    const { redis, replicas, start } = await startServers({ name: 'away', tokenDelayMs: 0 });
    await spoil(redis);
    const startedAt = performance.now();
    await start(1);
    await waitUntilReady(replicas[0]!);
    // About three seconds where nothing else goes on, most of them the process's own start.
    expect(performance.now() - startedAt).toBeLessThan(20_000);
    const stoppedAt = performance.now();
    expect(await replicas[0]!.stop()).toEqual({ code: 0, signal: null });
    // The time for a drain, 25 s, is not used.
    expect(performance.now() - stoppedAt).toBeLessThan(10_000);
    redis.resume();
  });
});

it('without a fleet its modules are not loaded and its metrics are absent', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['test/e2e/fleet.child.ts']);
  expect(JSON.parse(stdout)).toEqual({ clientModules: 0, fleetMetrics: 0 });
});
