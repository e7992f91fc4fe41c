/** How a configured fleet is joined: where its URL comes from, and what is said of it. */
import { rmSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { createFleetParts } from '../../src/sidecar/fleet.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { configOf, scratchFile } from '../config/base-env.ts';
import { until } from '../fleet/harness.ts';
import { startRedis } from '../support/redis.ts';

const PASSWORD = 'the-right-one';

function create(env: Readonly<Record<string, string>>) {
  const events: SidecarEvent[] = [];
  const parts = createFleetParts(configOf({ SIDECAR_FLEET_TIMEOUT_MS: '1000', ...env }).fleet, {
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
  await tokenStore.claim('n', {
    owner: 'a',
    leaseMs: 1000,
    excludedMark: undefined,
    isRefused: false,
    minRemainingShare: 0.1,
  });
  expect(await redis.command('KEYS', '*')).toEqual(['team-1:token:n']);
});
