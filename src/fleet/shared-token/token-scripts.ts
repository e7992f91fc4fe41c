/**
 * The Lua scripts of the store of shared tokens. Each runs atomically on the server and by the server's clock, so that
 * replicas with different clocks agree. One hash holds everything about one credential: the token (`value`, `expiresAt`), the lease
 * (`owner`, `leaseUntil`), and the last failure (`failure`, `failedBy`, `failedUntil`, `yieldUntil`, `wanted`). Instants are milliseconds of
 * the server's clock. Others may have written the hash: what is longer or later than the scripts write counts as absent.
 */
import { MAX_STORED_CHARS } from '../../token/store/shared-token-store.ts';
import { defineScript } from '../redis/script.ts';

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
export const CLAIM_SCRIPT = defineScript(`${PREAMBLE}${EXTEND_TTL}
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
export const PUBLISH_SCRIPT = defineScript(`${PREAMBLE}${EXTEND_TTL}
if leaseholder() or number(ARGV[3]) <= now then return {0} end
redis.call('HSET', key, 'value', ARGV[2], 'expiresAt', ARGV[3])
redis.call('HDEL', key, 'owner', 'leaseUntil', 'failure', 'failedBy', 'failedUntil', 'yieldUntil', 'wanted')
keep()
return {1}
`);

/** ARGV: owner, sealed failure, how long no other replica requests. */
export const PUBLISH_FAILURE_SCRIPT = defineScript(`${PREAMBLE}${EXTEND_TTL}
if leaseholder() then return {0} end
local held = number(ARGV[3])
redis.call('HSET', key, 'failure', ARGV[2], 'failedBy', ARGV[1],
  'failedUntil', digits(now + held), 'yieldUntil', digits(now + 2 * held))
redis.call('HDEL', key, 'owner', 'leaseUntil', 'wanted')
keep()
return {1}
`);

/** ARGV: owner. */
export const RELEASE_LEASE_SCRIPT = defineScript(`
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return {0} end
redis.call('HDEL', KEYS[1], 'owner', 'leaseUntil')
return {1}
`);
