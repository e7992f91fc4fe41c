/** What versions with shared tokens of format `bst1` left in Redis and ran there, byte for byte, for the identity of fleet-harness.ts. */

/** The store's clock when the record was written. */
export const BST1_WRITTEN_AT = 4_000_000_000_000;
export const BST1_KEY = 'test:token:dUAYK8zgIx8MhqxbARfU7g';
export const BST1_FIELDS = [
  [
    'value',
    'bst1.vAC5ydD8wmogEgbQkuyclge2wT2uGvrJvFTlWu5lkgjKreyqJQt3yZ6SaxxIn6XoJkGWiP0Ohs3tw2Igd_dPuUEgYt8Lv6cs654KnUNT_xsaJf7qb5eiwQ',
  ],
  ['expiresAt', '4000003600000'],
  ['lifetime', '3600000'],
  ['mark', '_0SKebljwPs5fP2Rtc8-Yw'],
] as const;

const PREAMBLE = `
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function number(text) return tonumber(text or '0') or 0 end
local function digits(value) return string.format('%.0f', value) end

local function keep()
  local last = now
  for _, at in ipairs(redis.call('HMGET', key, 'expiresAt', 'leaseUntil', 'yieldUntil')) do
    last = math.max(last, number(at or nil))
  end
  redis.call('PEXPIREAT', key, digits(last + 60000))
end
`;

/** ARGV: owner, lease, excluded mark, 1 when that token was refused, smallest remaining share of a lifetime. */
export const BST1_CLAIM = `${PREAMBLE}
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
`;

/** ARGV: owner, sealed token, mark, end of its lifetime, lifetime. */
export const BST1_PUBLISH = `${PREAMBLE}
local lease = redis.call('HMGET', key, 'owner', 'leaseUntil')
if lease[1] and lease[1] ~= ARGV[1] and number(lease[2]) > now then return {0} end

if number(ARGV[4]) <= now then return {0} end
redis.call('HSET', key, 'value', ARGV[2], 'mark', ARGV[3], 'expiresAt', ARGV[4], 'lifetime', ARGV[5])
redis.call('HDEL', key, 'owner', 'leaseUntil', 'failure', 'failedBy', 'failedUntil', 'yieldUntil', 'wanted')
keep()
return {1}
`;
