/**
 * For `check`: does once what a replica does on Redis to share a quota, on a key of its own that it removes again, and reports which
 * commands are refused.
 */
import { RedisFault } from '../redis/redis-fault.ts';
import type { RedisScriptClient } from '../redis/script-client.ts';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { createRedisQuotaStore } from './redis-quota-store.ts';
import { defineScript } from '../redis/script.ts';

export interface QuotaDryRunOptions {
  /** Has begun to connect. */
  readonly client: RedisScriptClient;
  /** Opens one more connection, to listen on. */
  readonly open: () => Promise<RedisConnection>;
  /** A key that is used by nothing else; also the name of the channel. */
  readonly key: string;
}

/** A first replica that needs a permit and reports a refusal: this runs every command of the script. */
const REQUEST = {
  id: 'check',
  want: 1,
  activity: 'active',
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

/** Runs each command of all scripts, returns those that are refused, and removes what the exchange left. */
const TRY_EACH_COMMAND = defineScript(`
local refused = {}
local function try(name, ...)
  local reply = redis.pcall(name, ...)
  if type(reply) == 'table' and reply.err then refused[#refused + 1] = name end
  return reply
end
local key = KEYS[1]
try('TIME')
try('HSET', key, 'a', '1')
try('HGET', key, 'a')
try('HMGET', key, 'a')
local flat = try('HGETALL', key)
try('PEXPIRE', key, 1000)
try('PUBLISH', key, '')
try('HDEL', key, 'a')
for i = 1, #flat, 2 do redis.pcall('HDEL', key, flat[i]) end
try('PEXPIREAT', key, 1)
return refused
`);

/** The refused commands; empty when all are allowed. Undefined: no reply from Redis, or a malformed one. */
export async function dryRunQuota({ client, open, key }: QuotaDryRunOptions): Promise<readonly string[] | undefined> {
  const store = createRedisQuotaStore({
    client: { run: (...script) => client.runWithLongerTimeout(...script) },
    // canSubscribe tries this on a connection whose reply can be waited for.
    subscriber: { subscribe: () => undefined },
    key: () => Promise.resolve(key),
    addConnectionListener: () => undefined,
  });
  const reply = await store.exchange(REQUEST);
  await client.whenReady();
  const refused = await client.runWithLongerTimeout(TRY_EACH_COMMAND, key, []);
  if (refused === undefined) return undefined;
  const names = [...refused.map(String), ...((await canSubscribe(key, open)) ? [] : ['SUBSCRIBE'])];
  return reply === undefined && names.length === 0 ? undefined : names;
}

/** @throws RedisFault when the connection cannot be opened, or ends */
async function canSubscribe(channel: string, open: () => Promise<RedisConnection>): Promise<boolean> {
  const connection = await open();
  try {
    await connection.subscribe(channel, () => undefined);
    return true;
  } catch (error) {
    if (error instanceof RedisFault && error.replyCode !== undefined) return false;
    throw error;
  } finally {
    connection.destroy();
  }
}
