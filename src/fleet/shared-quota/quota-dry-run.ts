/**
 * Does once what a replica does on Redis to share a quota, on a key of its own that it takes away again: one exchange, and listening
 * for news. Where a right is missing it says which. For `check`; what is done for good is quota-board's and ear's.
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
  /** A key that nobody else uses; also the name of the channel. */
  readonly key: string;
}

/** The first of a fleet, with a permit to get and a refusal to tell the others: it comes past every command. */
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
} as const;

/** Every command of all scripts, each by itself; answers with those that are refused, and takes away what the exchange left. */
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

/** Which commands are refused; none when all is well. Undefined: Redis did not answer, or not as it should. */
export async function dryRunQuota({ client, open, key }: QuotaDryRunOptions): Promise<readonly string[] | undefined> {
  const board = createRedisQuotaStore({
    client: { run: (...script) => client.runWithLongerTimeout(...script) },
    // Listening takes a connection whose answer can be waited for.
    subscriber: { subscribe: () => undefined },
    key: () => Promise.resolve(key),
    addConnectionListener: () => undefined,
  });
  const reply = await board.exchange(REQUEST);
  await client.whenReady();
  const refused = await client.runWithLongerTimeout(TRY_EACH_COMMAND, key, []);
  if (refused === undefined) return undefined;
  const names = [...refused.map(String), ...((await canSubscribe(key, open)) ? [] : ['SUBSCRIBE'])];
  return reply === undefined && names.length === 0 ? undefined : names;
}

/** @throws RedisFault when the connection could not be had or ended */
async function canSubscribe(channel: string, open: () => Promise<RedisConnection>): Promise<boolean> {
  const link = await open();
  try {
    await link.subscribe(channel, () => undefined);
    return true;
  } catch (error) {
    if (error instanceof RedisFault && error.replyCode !== undefined) return false;
    throw error;
  } finally {
    link.destroy();
  }
}
