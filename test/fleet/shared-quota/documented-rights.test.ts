/** The rights that docs/fleet.md lists suffice for a replica, and it needs each of them: all scripts on a real Redis. */
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import { openRedisConnection } from '../../../src/fleet/redis/redis-connection.ts';
import type { RedisConnection } from '../../../src/fleet/redis/redis-connection.ts';
import { runScript } from '../../../src/fleet/redis/script.ts';
import type { Script, ScriptArguments } from '../../../src/fleet/redis/script.ts';
import { EXCHANGE_SCRIPT } from '../../../src/fleet/shared-quota/quota-script.ts';
import { toScriptArguments } from '../../../src/fleet/shared-quota/redis-quota-store.ts';
import { createRedisTokenStore } from '../../../src/fleet/shared-token/redis-token-store.ts';
import { DOCUMENTED_RIGHTS, startRedisWithRights } from '../../support/redis.ts';

const COMMANDS = DOCUMENTED_RIGHTS.filter((right) => right.startsWith('+'));
const PREFIX = 'bearer-sidecar';

/** A first replica that needs a permit and reports a refusal, then leaves: this runs every command of the script. */
const REQUEST = {
  id: 'a',
  want: 1,
  fixed: { rate: 1, burst: 1 },
  knownReplicas: 1,
  calls: '',
  refusal: { at: 1, statedWaitMs: 1 },
  published: undefined,
  version: 0,
  maxPauseMs: 1000,
  isReturning: false,
  reportsReadUpTo: 0,
} as const;

async function connect(url: string): Promise<RedisConnection> {
  const connection = await openRedisConnection({ url, caFile: undefined, timeoutMs: 2000, clock: systemClock });
  onTestFinished(() => connection.destroy());
  return connection;
}

/** Does once what a replica does. @throws RedisFault of the first command that is refused */
async function runAllCommands(url: string): Promise<void> {
  const [connection, subscriber] = [await connect(url), await connect(url)];
  await connection.send(['PING']);
  const run = (script: Script, key: string, args: ScriptArguments) => runScript(connection, script, key, args);
  const client = { whenReady: () => Promise.resolve(true), runWithLongerTimeout: run };
  const tokens = createRedisTokenStore(client, PREFIX);
  const [owner, sealed] = ['me', 'sealed'];
  const claim = { owner, leaseMs: 1000, declined: undefined, isUseless: false };
  expect(await tokens.claim('a', claim)).toMatchObject({ kind: 'yours' });
  expect(await tokens.publish('a', { owner, sealed, expiresAt: Date.now() + 60_000 })).toBe(true);
  expect(await tokens.claim('a', { ...claim, owner: 'you' })).toMatchObject({ kind: 'found' });
  expect(await tokens.claim('b', claim)).toMatchObject({ kind: 'yours' });
  expect(await tokens.publishFailure('b', owner, sealed, 1000)).toBe(true);
  expect(await tokens.claim('c', claim)).toMatchObject({ kind: 'yours' });
  expect(await tokens.releaseLease('c', owner)).toBe(true);
  const quota = `${PREFIX}:quota:a`;
  await subscriber.subscribe(quota, () => undefined);
  for (const activity of ['active', 'leaving'] as const)
    await run(EXCHANGE_SCRIPT, quota, toScriptArguments({ ...REQUEST, activity }));
}

test('the rights suffice', async () => {
  expect(COMMANDS.length).toBeGreaterThan(10);
  const redis = await startRedisWithRights(DOCUMENTED_RIGHTS);
  await runAllCommands(redis.url);
  await expect(redis.dump()).rejects.toThrow('NOPERM');
});

test.each([...COMMANDS, '&'])('each is needed: %s', async (missing) => {
  const redis = await startRedisWithRights(DOCUMENTED_RIGHTS.filter((right) => !right.startsWith(missing)));
  await expect(runAllCommands(redis.url)).rejects.toThrow(/^does not permit its user/);
});
