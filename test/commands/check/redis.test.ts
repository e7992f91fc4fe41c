/** What `check` finds out about a fleet, over a real Redis. */
import { Secrets } from '../../../src/platform/secrets.ts';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { checkFleet } from '../../../src/commands/check/redis.ts';
import { configOf } from '../../config/base-env.ts';
import { startDelayingProxy } from '../../support/delaying-proxy.ts';
import { DOCUMENTED_RIGHTS, startClusterRedis, startRedis, startRedisWithRights } from '../../support/redis.ts';

async function stepsFor(url: string, timeoutMs = 1000) {
  const { fleet } = configOf({ SIDECAR_REDIS_URL: url, SIDECAR_FLEET_TIMEOUT_MS: String(timeoutMs) });
  const { signal } = new AbortController();
  const secrets = new Secrets(systemClock);
  const surroundings = { clock: systemClock, stop: signal, signal };
  const steps = await checkFleet(fleet!, { ...surroundings, secrets });
  return { steps, secrets, outcomes: steps.map(({ step, outcome }) => `${step} ${outcome}`) };
}

describe('the check of a fleet', () => {
  test('joins, and leaves nothing behind', async () => {
    const redis = await startRedis();
    const { outcomes } = await stepsFor(redis.url);
    expect(outcomes).toEqual(['fleet ok']);
    expect(await redis.command('KEYS', '*')).toEqual([]);
  });

  test('reports a wrong password without quoting it', async () => {
    const redis = await startRedis({ args: ['--requirepass', 'the-right-one'] });
    const { steps, secrets } = await stepsFor(`redis://:the-wrong-one@127.0.0.1:${redis.port}`);
    expect(steps.at(-1)).toMatchObject({
      outcome: 'fail',
      detail: expect.stringMatching(/^Redis refused the user or the password/) as string,
      advice: expect.stringContaining('SIDECAR_REDIS_URL') as string,
    });
    expect(JSON.stringify(steps)).not.toMatch(/the-(right|wrong)-one/);
    expect(secrets.mask('the-wrong-one')).toBe('********');
  });

  test('names missing permissions', async () => {
    const user = ['--user', 'sidecar', 'on', '>sesame', '~elsewhere:*', '+@all'];
    const redis = await startRedis({ args: user, url: (port) => `redis://sidecar:sesame@127.0.0.1:${port}` });
    const { steps } = await stepsFor(redis.url);
    expect(steps.at(-1)).toMatchObject({
      step: 'fleet',
      outcome: 'fail',
      detail: expect.stringMatching(/^Redis does not permit its user/) as string,
    });
  });

  test('needs only the permissions in docs/fleet.md, and says that one is missing', async () => {
    const { steps } = await stepsFor((await startRedisWithRights(DOCUMENTED_RIGHTS)).url);
    expect(steps.at(-1)).toMatchObject({
      step: 'fleet',
      outcome: 'ok',
      detail: expect.stringMatching(/^joined like a replica; the median reply takes [\d.]+ ms$/) as string,
    });
    const without = await startRedisWithRights(DOCUMENTED_RIGHTS.filter((right) => right !== '+hset'));
    expect((await stepsFor(without.url)).steps.at(-1)).toMatchObject({
      step: 'fleet',
      outcome: 'fail',
      detail: expect.stringMatching(/^Redis does not permit its user a command that the scripts/) as string,
      advice: expect.stringMatching(/SIDECAR_REDIS_URL.*docs\/fleet\.md/) as string,
    });
  });

  test('reports an unreachable server without waiting for it', async () => {
    const { steps, outcomes } = await stepsFor('redis://127.0.0.1:1');
    expect(outcomes).toEqual(['fleet fail']);
    expect(steps[0]?.detail).toMatch(/^Redis refused the connection \(ECONNREFUSED\); nothing listens there/);
    expect(steps[0]?.advice).toContain('SIDECAR_REDIS_URL');
    expect(steps[0]?.detail).toMatch(/every replica uses its own token/);
  });

  test('reports a missing socket file', async () => {
    const { steps, outcomes } = await stepsFor('unix:///nowhere/redis.sock');
    expect(outcomes).toEqual(['fleet fail']);
    expect(steps[0]?.detail).toMatch(/^Redis .*ENOENT/);
  });

  test('reports replies that are later than fleet.timeoutMs, with the median and the setting', async () => {
    const redis = await startRedis();
    const { port } = await startDelayingProxy(redis.port, 200);
    const { steps } = await stepsFor(`redis://127.0.0.1:${port}`, 50);
    expect(steps.at(-1)).toMatchObject({
      outcome: 'fail',
      detail: expect.stringMatching(
        /^the median reply takes 2\d\d\.\d ms, longer than the 50 ms of fleet\.timeoutMs \(SIDECAR_FLEET_TIMEOUT_MS\): every replica/,
      ) as string,
      advice: expect.stringContaining('place Redis nearer') as string,
    });
  });

  test('reports cluster mode', async () => {
    const { steps } = await stepsFor((await startClusterRedis()).url);
    expect(steps.at(-1)).toMatchObject({
      outcome: 'fail',
      detail: expect.stringMatching(/^Redis runs in cluster mode, .* in fleet\.redisUrl/) as string,
    });
  });

  test.each(['EVAL', 'EVALSHA'])('names %s when it is renamed', async (command) => {
    const redis = await startRedis({ args: ['--rename-command', command, ''] });
    const { steps } = await stepsFor(redis.url);
    expect(steps.at(-1)).toMatchObject({
      outcome: 'fail',
      detail: expect.stringMatching(new RegExp(`\\b${command}\\b`)) as string,
    });
  });

  test('reports rediss: on a port without TLS, and HTTP on either scheme', async () => {
    const redis = await startRedis();
    const { steps } = await stepsFor(`rediss://127.0.0.1:${redis.port}`);
    expect(steps.at(-1)).toMatchObject({
      step: 'fleet',
      outcome: 'fail',
      detail: expect.stringMatching(/^Redis does not speak TLS on this port: use redis: in fleet\.redisUrl/) as string,
    });
    const server = createServer((_, response) => response.end()).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    for (const scheme of ['redis', 'rediss']) {
      const { port } = server.address() as AddressInfo;
      const http = await stepsFor(`${scheme}://127.0.0.1:${port}`);
      expect(http.steps.at(-1)?.detail).toMatch(/^Redis is an HTTP server: check host and port in fleet\.redisUrl/);
    }
  });
});
