/**
 * Implements the store of shared tokens (token/store/shared-token-store.ts) over Redis. Scripts run atomically on the server and by its
 * clock, so that replicas with different clocks agree. One hash holds everything about one credential: the token (`value`, `expiresAt`), the
 * lease (`owner`, `leaseUntil`), and the last failure (`failure`, `failedBy`, `failedUntil`, `yieldUntil`, `wanted`). Instants are
 * milliseconds of the server's clock. Others may have written the hash: what is longer or later than the scripts write counts as absent.
 */
import { createHash } from 'node:crypto';
import { MAX_STORED_CHARS, type ClaimResult, type SharedTokenStore } from '../../token/store/shared-token-store.ts';
import type { RedisScriptClient } from '../redis/script-client.ts';
import { defineScript, type Script, type ScriptReply } from '../redis/script.ts';

/** Longer than any that is requested: an instant beyond it is from another clock. */
const MAX_LEASE_MS = 10_000;
const MAX_OWNER_CHARS = 64;

/** `digits` is needed because Lua prints large numbers in exponential form. */
const PREAMBLE = `
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function number(text)
  local value = tonumber(text or '0') or 0
  return value >= 0 and value < 1e15 and value or 0
end
local function digits(value) return string.format('%.0f', value) end
-- Reads a field whose text is not too long for one that a script has written.
local function read(field, most)
  local text = redis.call('HGET', key, field)
  if text and #text <= most then return text end
  if text then redis.call('HDEL', key, field) end
  return nil
end
-- The owner of the lease, unless that is the caller.
local function leaseholder()
  local left = number(redis.call('HGET', key, 'leaseUntil')) - now
  local owner = read('owner', ${MAX_OWNER_CHARS})
  return owner ~= ARGV[1] and left > 0 and left <= ${MAX_LEASE_MS} and owner
end
`;

/** The hash expires a minute after the last instant in it. */
const EXTEND_TTL = `
local function keep()
  local last = now
  for _, at in ipairs(redis.call('HMGET', key, 'expiresAt', 'leaseUntil', 'yieldUntil')) do
    last = math.max(last, number(at or nil))
  end
  redis.call('PEXPIREAT', key, digits(last + 60000))
end
`;

/** ARGV: owner, lease, SHA-1 of the declined text (may be empty), 1 when that is useless for all. */
const CLAIM_SCRIPT = defineScript(`${PREAMBLE}${EXTEND_TTL}
local function declines(text) return ARGV[3] ~= '' and redis.sha1hex(text) == ARGV[3] end
local function remove(...) if ARGV[4] == '1' then redis.call('HDEL', key, ...) end end
local token = read('value', ${MAX_STORED_CHARS})
if token then
  if not declines(token) then return {'found', token, now} end
  remove('value', 'expiresAt')
end
local other = leaseholder()
if other then return {'taken', other} end
local failure = read('failure', ${MAX_STORED_CHARS})
if failure and declines(failure) then
  remove('failure', 'failedBy', 'failedUntil', 'yieldUntil', 'wanted')
elseif failure then
  local last = redis.call('HMGET', key, 'failedBy', 'failedUntil', 'yieldUntil', 'wanted')
  local ended, open = number(last[2]), 0
  if last[1] ~= ARGV[1] then
    open = ended
    if open > now then redis.call('HSET', key, 'wanted', '1') end
  elseif last[4] then
    open = number(last[3])
  end
  if open > now then
    -- An owner that yields claims again soon after the others have had their turn.
    return {'failed', failure, now, math.min(open, math.max(ended, now) + 500) - now}
  end
end
redis.call('HSET', key, 'owner', ARGV[1], 'leaseUntil', digits(now + number(ARGV[2])))
keep()
return {'yours', now}
`);

/** ARGV: owner, sealed token, end of its lifetime. */
const PUBLISH_SCRIPT = defineScript(`${PREAMBLE}${EXTEND_TTL}
if leaseholder() or number(ARGV[3]) <= now then return {0} end
redis.call('HSET', key, 'value', ARGV[2], 'expiresAt', ARGV[3])
redis.call('HDEL', key, 'owner', 'leaseUntil', 'failure', 'failedBy', 'failedUntil', 'yieldUntil', 'wanted')
keep()
return {1}
`);

/** ARGV: owner, sealed failure, how long no other replica requests. */
const PUBLISH_FAILURE_SCRIPT = defineScript(`${PREAMBLE}${EXTEND_TTL}
if leaseholder() then return {0} end
local held = number(ARGV[3])
redis.call('HSET', key, 'failure', ARGV[2], 'failedBy', ARGV[1],
  'failedUntil', digits(now + held), 'yieldUntil', digits(now + 2 * held))
redis.call('HDEL', key, 'owner', 'leaseUntil', 'wanted')
keep()
return {1}
`);

/** ARGV: owner. */
const RELEASE_LEASE_SCRIPT = defineScript(`
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return {0} end
redis.call('HDEL', KEYS[1], 'owner', 'leaseUntil')
return {1}
`);

/** @param keyPrefix begins the name of every key */
export function createRedisTokenStore(
  client: Pick<RedisScriptClient, 'whenReady' | 'runWithLongerTimeout'>,
  keyPrefix: string,
): SharedTokenStore {
  const run = (script: Script, name: string, ...args: (string | number)[]): Promise<ScriptReply | undefined> =>
    // Calls are rare, and one wait is cheaper than a token request of each replica.
    client.runWithLongerTimeout(script, `${keyPrefix}:token:${name}`, args);
  const runChange = async (...call: Parameters<typeof run>): Promise<boolean | undefined> => {
    const reply = await run(...call);
    return reply === undefined ? undefined : reply[0] === 1;
  };
  return {
    whenReady: () => client.whenReady(),
    async claim(name, { owner, leaseMs, declined, isUseless }) {
      // A digest: waiting replicas claim often, and a sealed token has kilobytes.
      const digest = declined === undefined ? '' : createHash('sha1').update(declined).digest('hex');
      const reply = await run(CLAIM_SCRIPT, name, owner, leaseMs, digest, isUseless ? 1 : 0);
      return reply && parseClaimResult(reply);
    },
    publish: (name, { owner, sealed, expiresAt }) =>
      runChange(PUBLISH_SCRIPT, name, owner, sealed, Math.floor(expiresAt)),
    publishFailure: (name, owner, sealed, holdMs) =>
      runChange(PUBLISH_FAILURE_SCRIPT, name, owner, sealed, Math.ceil(holdMs)),
    releaseLease: (name, owner) => runChange(RELEASE_LEASE_SCRIPT, name, owner),
  };
}

function parseClaimResult([kind, ...values]: ScriptReply): ClaimResult | undefined {
  const [first, storeNow, leftMs] = values;
  if (kind === 'taken' && typeof first === 'string') return { kind, owner: first };
  if (kind === 'yours' && typeof first === 'number') return { kind, storeNow: first };
  if (typeof first !== 'string' || typeof storeNow !== 'number') return undefined;
  if (kind === 'found') return { kind, sealed: first, storeNow };
  return kind === 'failed' && typeof leftMs === 'number' ? { kind, sealed: first, storeNow, leftMs } : undefined;
}
