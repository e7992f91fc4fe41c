/** How a configured fleet is joined: where its URL comes from, and what is said of it. */
import { Secrets } from '../../src/platform/secrets.ts';
import { rmSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { createFleetParts } from '../../src/composition/fleet.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { configOf, scratchFile } from '../config/base-env.ts';
import { until } from '../fleet/harness.ts';
import { startDelayingProxy } from '../support/delaying-proxy.ts';
import { startInProcess } from './in-process.ts';
import { startRedis } from '../support/redis.ts';

const PASSWORD = 'the-right-one';

function create(env: Readonly<Record<string, string>>) {
  const events: SidecarEvent[] = [];
  const parts = createFleetParts(configOf({ SIDECAR_FLEET_TIMEOUT_MS: '1000', ...env }).fleet, {
    secrets: new Secrets(systemClock),
    clock: systemClock,
    random: Math.random,
    observe: (event) => events.push(event),
  });
  if (parts === undefined) throw new Error('no fleet');
  onTestFinished(() => parts.close());
  parts.client.start();
  return { ...parts, events };
}

test('a URL in a file is read again for every connection, and its errors do not show it', async () => {
  const redis = await startRedis({ args: ['--requirepass', PASSWORD] });
  const path = scratchFile(`redis://:the-wrong-one@127.0.0.1:${redis.port}`);
  const { client, events } = create({ SIDECAR_REDIS_URL_FILE: path });
  expect(await client.whenReady()).toBe(false);
  writeFileSync(path, 'the-right-one-without-its-url');
  await until(
    () => client.state().fault?.includes('fleet.redisUrlFile holds no Redis URL') === true,
    'it was read again',
  );
  writeFileSync(path, `redis://:${PASSWORD}@127.0.0.1:${redis.port}\n`);
  await until(() => client.state().connected, 'it was joined');
  expect(JSON.stringify(events)).not.toMatch(/the-(right|wrong)-one/);
});

test('a missing file is named', async () => {
  const path = scratchFile('redis://127.0.0.1:1');
  const { client, events } = create({ SIDECAR_REDIS_URL_FILE: path });
  expect(await client.whenReady()).toBe(false);
  expect(client.state().fault).toMatch(/^Redis refused the connection/);
  rmSync(path);
  await until(() => client.state().fault?.includes(`${path} does not exist`) === true, 'it was looked for again');
  expect(client.state().connected).toBe(false);
  const details = events.flatMap((event) => (event.kind === 'fleet-lost' ? [event.detail] : []));
  expect(details).toEqual([expect.stringMatching(/^Redis refused/), expect.stringMatching(`${path} does not exist`)]);
});

test('an unencrypted password gives one warning', async () => {
  const redis = await startRedis({ args: ['--requirepass', PASSWORD] });
  // Every address of this machine, and by its name no loopback.
  const { client, events } = create({ SIDECAR_REDIS_URL: `redis://:${PASSWORD}@0.0.0.0:${redis.port}` });
  await client.whenReady();
  await redis.kill();
  await redis.restart();
  await until(() => events.filter(({ kind }) => kind === 'fleet-joined').length === 2, 'it was joined again');
  expect(events.filter(({ kind }) => kind === 'warning')).toEqual([
    { kind: 'warning', message: expect.stringContaining('use rediss:') as string },
  ]);
});

test('key names have the configured prefix', async () => {
  const redis = await startRedis();
  const { tokenStore } = create({ SIDECAR_REDIS_URL: redis.url, SIDECAR_FLEET_KEY_PREFIX: 'team-1' });
  await tokenStore.whenReady();
  await tokenStore.claim('n', { owner: 'a', leaseMs: 1000, declined: undefined, isUseless: false });
  expect(await redis.command('KEYS', '*')).toEqual(['team-1:token:n']);
});

test('a replica leaves the shared quota while Redis replies too late, and joins again afterwards', async () => {
  const redis = await startRedis();
  const proxy = await startDelayingProxy(redis.port, 0);
  const fleet = create({ SIDECAR_REDIS_URL: `redis://127.0.0.1:${proxy.port}`, SIDECAR_FLEET_TIMEOUT_MS: '100' });
  const membership = fleet.joinQuota(
    { upstreamOrigin: 'https://api.test', group: 'default', client: { kind: 'value', value: 'a' } },
    { rate: 50, burst: 1, maxInFlight: 8, maxStreams: 8, maxPauseMs: 300_000 },
  );
  onTestFinished(() => membership.leave());
  membership.start({
    isPaused: false,
    declaredLimits: undefined,
    isHighWaiting: false,
    isIdle: true,
    pump: () => undefined,
    pause: () => undefined,
  });
  const quotaState = () => membership.state(systemClock.now()).state;
  await until(() => quotaState() === 'joined', 'it was joined');
  proxy.roundTripMs = 300;
  // Waiting requests make the member ask for permits.
  await until(() => {
    membership.setWaiting(20);
    return fleet.client.state().state === 'degraded';
  }, 'it was degraded');
  expect(quotaState()).toBe('apart');
  const countCommands = () => fleet.events.filter(({ kind }) => kind === 'fleet-command').length;
  const before = countCommands();
  for (let times = 0; times < 20; times++) membership.setWaiting(times % 2 === 0 ? 20 : 0);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect([quotaState(), countCommands()]).toEqual(['apart', before]);
  proxy.roundTripMs = 0;
  await until(() => quotaState() === 'joined', 'it was joined again');
});

test('declared limits with a window below five seconds bound the rate of the whole fleet', async () => {
  const redis = await startRedis();
  const limits = '[{"calls":10,"per":"1s"},{"calls":1,"per":"1d"}]';
  const env = {
    SIDECAR_REDIS_URL: redis.url,
    SIDECAR_RATE: '100',
    SIDECAR_BURST: '5',
    SIDECAR_THROTTLE_LIMITS: limits,
  };
  const running = await startInProcess({ env });
  const rates = async (): Promise<unknown> => {
    const status = (await (await fetch(`${running.sidecar.adminUrl}/status`)).json()) as {
      readonly throttle: { readonly rate: number; readonly fleet: { readonly state: string; readonly rate: number } };
    };
    const { rate, fleet } = status.throttle;
    return { rate, state: fleet.state, fleetRate: fleet.rate };
  };
  const joined = { rate: 9.8, state: 'joined', fleetRate: 9.8 };
  await expect.poll(rates).toEqual(joined);
});

test('a replica that has never reached Redis uses its configured part of a declared limit', async () => {
  const env = {
    ...{ SIDECAR_REDIS_URL: 'redis://127.0.0.1:1', SIDECAR_THROTTLE_SHARE: '4', SIDECAR_QUEUE_MAX: '0' },
    SIDECAR_THROTTLE_LIMITS: JSON.stringify([{ calls: 8, per: '1h' }]),
  };
  const { url } = await startInProcess({ env });
  const statuses: number[] = [];
  for (let call = 0; call < 4; call++) statuses.push((await fetch(url)).status);
  expect(statuses).toEqual([200, 200, 503, 503]);
});
