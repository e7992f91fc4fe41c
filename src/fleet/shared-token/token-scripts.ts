/**
 * The Lua scripts of the store of shared tokens. Each runs atomically on the server and by the server's clock, so that
 * replicas with different clocks agree. One hash holds everything about one credential: the token (`value`, `mark`,
 * `expiresAt`, `lifetime`), the lease (`owner`, `leaseUntil`), and the last failure (`failure`, `failedBy`, `failedUntil`,
 * `yieldUntil`, `wanted`). Instants are milliseconds of the server's clock.
 */
import { defineScript } from '../redis/script.ts';

/** `digits` is needed because Lua prints large numbers in exponential form. */
const PREAMBLE = `
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function number(text) return tonumber(text or '0') or 0 end
local function digits(value) return string.format('%.0f', value) end
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

const CHECK_LEASE = `
local lease = redis.call('HMGET', key, 'owner', 'leaseUntil')
if lease[1] and lease[1] ~= ARGV[1] and number(lease[2]) > now then return {0} end
`;

/** ARGV: owner, lease, excluded mark (may be empty), 1 when that token was refused, smallest remaining share of a lifetime. */
export const CLAIM_SCRIPT = defineScript(`${PREAMBLE}${EXTEND_TTL}
local token = redis.call('HMGET', key, 'value', 'mark', 'expiresAt', 'lifetime')
if token[1] and token[2] ~= ARGV[3] then
  local left = number(token[3]) - now
  if left > 0 and left >= number(token[4]) * number(ARGV[5]) then return {'found', token[1], left} end
elseif token[1] and ARGV[4] == '1' then
  redis.call('HDEL', key, 'value', 'mark', 'expiresAt', 'lifetime')
end
local lease = redis.call('HMGET', key, 'owner', 'leaseUntil')
if lease[1] and lease[1] ~= ARGV[1] and number(lease[2]) > now then return {'taken', lease[1]} end
local last = redis.call('HMGET', key, 'failure', 'failedBy', 'failedUntil', 'yieldUntil', 'wanted')
if last[1] then
  local ended, open = number(last[3]), 0
  if last[2] ~= ARGV[1] then
    open = ended
    if open > now then redis.call('HSET', key, 'wanted', '1') end
  elseif last[5] then
    open = number(last[4])
  end
  if open > now then
    -- An owner that yields claims again soon after the others have had their turn.
    return {'failed', last[1], math.min(open, math.max(ended, now) + 500) - now}
  end
end
redis.call('HSET', key, 'owner', ARGV[1], 'leaseUntil', digits(now + number(ARGV[2])))
keep()
return {'yours', now}
`);

/** ARGV: owner, sealed token, mark, end of its lifetime, lifetime. */
export const PUBLISH_SCRIPT = defineScript(`${PREAMBLE}${EXTEND_TTL}${CHECK_LEASE}
if number(ARGV[4]) <= now then return {0} end
redis.call('HSET', key, 'value', ARGV[2], 'mark', ARGV[3], 'expiresAt', ARGV[4], 'lifetime', ARGV[5])
redis.call('HDEL', key, 'owner', 'leaseUntil', 'failure', 'failedBy', 'failedUntil', 'yieldUntil', 'wanted')
keep()
return {1}
`);

/** ARGV: owner, sealed failure, how long no other replica requests. */
export const PUBLISH_FAILURE_SCRIPT = defineScript(`${PREAMBLE}${EXTEND_TTL}${CHECK_LEASE}
local held = number(ARGV[3])
redis.call('HDEL', key, 'owner', 'leaseUntil', 'wanted')
redis.call('HSET', key, 'failure', ARGV[2], 'failedBy', ARGV[1],
  'failedUntil', digits(now + held), 'yieldUntil', digits(now + 2 * held))
keep()
return {1}
`);

/** ARGV: owner. */
export const RELEASE_LEASE_SCRIPT = defineScript(`
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return {0} end
redis.call('HDEL', KEYS[1], 'owner', 'leaseUntil')
return {1}
`);

/** ARGV: the unreadable text. */
export const DISCARD_UNREADABLE_SCRIPT = defineScript(`
if redis.call('HGET', KEYS[1], 'value') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'value', 'mark', 'expiresAt', 'lifetime')
elseif redis.call('HGET', KEYS[1], 'failure') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'failure', 'failedBy', 'failedUntil', 'yieldUntil', 'wanted')
else
  return {0}
end
return {1}
`);
