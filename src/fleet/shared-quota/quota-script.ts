/**
 * The Redis script of one exchange between a replica and its fleet, for one throttle. One hash holds the rate and a bucket (GCRA:
 * `tat` is when it would be full), the pause, the replicas (`r:ID`), the leader, what the leader has published, and the reports of
 * calls: those that the leader has not read (field `mail`), and the last ones that it has (`olderReports`, `readReports`). Of declared
 * limits it holds the calls that count, by the instant at which they stop to (`limit:KEY`), and the permits that each replica has leased
 * (`held:ID`). Instants are milliseconds of the server's clock, with fractions. Each permit has an instant of its own, so that all replicas together keep one
 * even rate.
 */
import { defineScript } from '../redis/script.ts';
import { LIMIT_COUNTS, LIMIT_GRANTS, REPLICA_TIMEOUT_MS } from './limits-script.ts';

/** A leader with calls is gone sooner than others. */
const LEADER_LEASE_MS = 900;
/** By which the lease is shorter during a pause, when the others wait for the leader. */
const PAUSED_LEASE_CUT_MS = 400;
/** How far ahead permits are leased: the longer, the fewer exchanges when permits are rare. */
const HORIZON_MS = 4_000;
/** While no model explains the limit, so that a changed rate holds soon. */
const TENTATIVE_HORIZON_MS = 1_000;
const MAX_PERMITS_PER_REPLY = 16;
/** After a loss of data each replica gets only its own part, until all may be back. */
const RECOVERY_MS = 5_000;
/** Until then permits are leased only this far ahead. */
const RECOVERY_HORIZON_MS = 400;
const MAX_UNREAD_LENGTH = 60_000;
/** Longest content of the fields for reports, model and permits held, and of any other; a name is no longer than that. */
const MAX_TEXT_LENGTH = 100_000;
const MAX_VALUE_LENGTH = 64;
/** Longest field of a declared limit, and its name. */
const MAX_COUNTS_LENGTH = 8_000;
const MAX_LIMIT_NAME_LENGTH = 300;
/** Counts of limits with `each`, of all replicas together. */
const MAX_VALUES = 4_000;
/** More replicas than any fleet has; a hash with more fields than they need was written by others. */
const MAX_REPLICAS = 1_000;
const MAX_FIELDS = 2 * MAX_REPLICAS + 100 + MAX_VALUES;
/** Reports that were read stay for the next leader: this many characters at least, twice as many at most. */
const KEPT_REPORTS_LENGTH = 8_000;

const SERVER_TIME = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
`;

/**
 * ARGV: replica, permits wanted, `active`, `idle` or `leaving`, fixed rate and burst (or empty), replicas known of, calls, instant and
 * stated wait of a refusal (or empty), what the leader publishes as JSON (or empty), version of the model that is known, longest pause,
 * `1` when this replica returns, position up to which it has read the reports (0 for none), declared limits as JSON (or empty).
 * @param clock Lua that sets `now`; for tests
 */
export function buildExchangeScript(clock = SERVER_TIME): string {
  return `${clock}${STATE}${BOUNDS}${LIMIT_COUNTS}${PRESENCE}${LEADER}${REFUSAL}${PUBLICATION}${PERMITS}${REPORTS}${LIMIT_GRANTS}${REPLY}`;
}

const STATE = `
local key, id = KEYS[1], ARGV[1]
-- NaN and infinite numbers are none.
local function toNumber(text)
  local value = tonumber(text or '')
  return value and value > -1e15 and value < 1e15 and value or nil
end
local flat, state, written, gone = redis.pcall('HGETALL', key), {}, {}, {}
if flat.err and not string.find(flat.err, 'WRONGTYPE') then return flat end
-- Not written by a fleet: as if there were nothing.
if flat.err or #flat > ${2 * MAX_FIELDS} then
  redis.call('PEXPIREAT', key, 1)
  flat = {}
end
local function number(field) return toNumber(state[field]) or 0 end
local function put(field, value)
  state[field] = value
  written[#written + 1] = field
  written[#written + 1] = value
end
local function instant(value) return string.format('%.3f', value) end
-- Deleted after the write: a server without memory refuses a script that writes first, and permits one that has deleted.
local function remove(field)
  state[field] = nil
  gone[#gone + 1] = field
end
local mustPublish = false
`;

/** What others have written, or this script by another clock: no number is further away than the script itself sets it. */
const BOUNDS = `
local isText = {mail = true, olderReports = true, readReports = true, model = true}
local function isValid(field, value)
  local isLimit = string.sub(field, 1, 6) == 'limit:'
  if #field > (isLimit and ${MAX_LIMIT_NAME_LENGTH} or ${MAX_VALUE_LENGTH}) then return false end
  if isLimit then return #value <= ${MAX_COUNTS_LENGTH} end
  if string.sub(field, 1, 5) == 'held:' then return #value <= ${MAX_TEXT_LENGTH} end
  if #value > (isText[field] and ${MAX_TEXT_LENGTH} or ${MAX_VALUE_LENGTH}) then return false end
  local asNumber = toNumber(value)
  if field == 'rate' then return asNumber and (asNumber == 0 or (asNumber > 1e-9 and asNumber < 1e9)) end
  if field == 'burst' then return asNumber and asNumber >= 1 and asNumber < 1e9 end
  if field == 'epoch' or field == 'version' then return #value < 10 and string.find(value, '^%d+$') end
  return asNumber or string.sub(field, 1, 2) ~= 'r:'
end
local latest = now
for i = 1, #flat, 2 do
  local field, value = flat[i], flat[i + 1]
  if not isValid(field, value) then
    remove(field)
  else
    state[field] = value
    if field == 'born' or field == 'pausedAt' or string.sub(field, 1, 2) == 'r:' then
      latest = math.max(latest, toNumber(value) or 0)
    end
  end
end
-- An instant that was once the present is ahead: the clock was set back by at least as much, and the pause moves with it.
if latest > now and state.pausedUntil then put('pausedUntil', instant(number('pausedUntil') - (latest - now))) end
local function bound(field, most)
  if number(field) > most then put(field, instant(most)) end
end
bound('born', now)
bound('lostAt', now)
bound('pausedAt', now)
bound('pausedUntil', now + tonumber(ARGV[12]))
bound('leaderUntil', now + ${REPLICA_TIMEOUT_MS})
`;

const PRESENCE = `
if ARGV[3] == 'leaving' then
  if declared and #written > 0 then redis.call('HSET', key, unpack(written)) end
  redis.call('HDEL', key, 'r:' .. id, 'held:' .. id)
  if state.leader == id then redis.call('HDEL', key, 'leader') end
  return {}
end
local others, before, oldest = {}, {}, now
for field in pairs(state) do
  if string.sub(field, 1, 2) == 'r:' and field ~= 'r:' .. id then others[#others + 1] = field end
end
-- A replica that returns uses its part until it has the reply, and so may the others: each of them is here with its next exchange.
local known = math.min(tonumber(ARGV[6]), ${MAX_REPLICAS})
local isReturning = ARGV[13] == '1' and known > 1
local isRecovering = now < number('born') + ${RECOVERY_MS}
local expected = math.min(math.max(isRecovering and number('expected') or 0, known), ${MAX_REPLICAS})
if not state.born and known > 1 then
  -- Void what was leased before the loss.
  put('epoch', string.format('%.0f', math.floor(now / 1000) % 1e8))
  mustPublish = true
end
if ARGV[13] == '1' or (known > 1 and not state.born) then put('lostAt', instant(now)) end
if not state.born or isReturning then
  put('born', instant(now))
  isRecovering = true
end
if isRecovering and expected ~= number('expected') then put('expected', tostring(expected)) end
local present, here = 1, isReturning and 0 or 1
for _, field in ipairs(others) do
  bound(field, now)
  local seen = number(field)
  if now - seen > ${REPLICA_TIMEOUT_MS} then
    remove(field)
  else
    present = present + 1
    if seen >= number('born') then here = here + 1 end
    oldest = math.min(oldest, seen)
    before[string.sub(field, 3)] = field < 'r:' .. id
  end
end
if not isReturning then
  -- Pushed, so that each knows how many parts there are should it lose the store now.
  if not state['r:' .. id] then mustPublish = true end
  put('r:' .. id, instant(now))
end
local isSettling = isRecovering and here < expected
if isSettling then present = math.max(present, expected) end
`;

const LEADER = `
local function leaseEnd() return number('leaderUntil') - (state.held == '1' and ${PAUSED_LEASE_CUT_MS} or 0) end
local leads = state.leader == id
if not leads then
  local isVacant = not state.leader or leaseEnd() <= now
  leads = not isReturning and (isVacant or (state.leaderIdle == '1' and ARGV[3] == 'active'))
end
if leads then
  put('leader', id)
  put('leaderUntil', instant(now + (ARGV[3] == 'idle' and ${REPLICA_TIMEOUT_MS} or ${LEADER_LEASE_MS})))
  put('leaderIdle', ARGV[3] == 'idle' and '1' or '0')
end
-- The leader is the last, so that the first one looks after it.
local rank = 0
for other, isBefore in pairs(before) do
  if leads or (isBefore and other ~= state.leader) then rank = rank + 1 end
end
`;

const REFUSAL = `
local function intervalOf(rate) return 1000 / rate end
-- Keeps the number of permits that are saved up; an unknown number counts as none. Time that is leased stays leased: the first
-- permit of the new rate comes one new interval after the last permit of the old one.
local function setPace(rate, burst)
  local before, level, leasedMs = number('rate'), 0, 0
  if before > 0 then
    level = math.min(burst, number('burst') - (math.max(number('tat'), now) - now) / intervalOf(before))
    if level < 0 then leasedMs, level = -level * intervalOf(before), 0 end
  end
  put('rate', tostring(rate))
  put('burst', tostring(burst))
  if rate > 0 then put('tat', instant(now + leasedMs + (burst - level) * intervalOf(rate))) end
end
if ARGV[4] ~= '' and (tonumber(ARGV[4]) ~= number('rate') or tonumber(ARGV[5]) ~= number('burst')) then
  setPace(tonumber(ARGV[4]), tonumber(ARGV[5]))
end
if isReturning and number('rate') > 0 then
  -- What was saved up meanwhile has been used by the parts.
  put('tat', instant(math.max(number('tat'), now + number('burst') * intervalOf(number('rate')))))
end
if ARGV[8] ~= '' then
  -- Without a limit each replica pauses by itself, and only a stated wait holds for the others. All report, so that the leader learns.
  if number('rate') == 0 then
    mustPublish = true
  elseif tonumber(ARGV[8]) > number('pausedAt') then
    put('epoch', tostring(number('epoch') + 1))
    put('pausedAt', instant(now))
    put('held', '1')
    -- The permits leased before are void, and nothing is saved up.
    if number('rate') > 0 then put('tat', instant(now + number('burst') * intervalOf(number('rate')))) end
    mustPublish = true
  end
  local statedUntil = ARGV[9] ~= '' and now + math.min(tonumber(ARGV[9]), tonumber(ARGV[12])) or 0
  if statedUntil > number('pausedUntil') then
    put('pausedUntil', instant(statedUntil))
    mustPublish = true
  end
end
if ARGV[7] ~= '' and #(state.mail or '') < ${MAX_UNREAD_LENGTH} then
  put('mail', (state.mail or '') .. ARGV[7])
end
`;

const PUBLICATION = `
if leads and ARGV[10] ~= '' then
  local limit = cjson.decode(ARGV[10])
  if ARGV[4] == '' and (not state.rate or limit.rate ~= number('rate') or limit.burst ~= number('burst')) then
    setPace(limit.rate, limit.burst)
  end
  put('tentative', limit.isTentative and '1' or '0')
  if limit.epoch == number('epoch') and state.held == '1' then
    put('held', '0')
    put('pausedUntil', instant(limit.openAt))
    -- The probe has used a permit, and nothing is saved up.
    if number('rate') > 0 then put('tat', instant(math.max(now, limit.openAt) + number('burst') * intervalOf(number('rate')))) end
  end
  if limit.model ~= (state.model or '') then
    put('model', limit.model)
    put('version', tostring(number('version') + 1))
  end
  mustPublish = true
end
`;

const PERMITS = `
local permitTimes, again, rate, burst = {}, 0, number('rate'), number('burst')
local want = tonumber(ARGV[2])
if want > 0 and state.held == '1' then
  again = 250
elseif want > 0 and rate > 0 then
  local interval, from = intervalOf(rate), math.max(now, number('pausedUntil'))
  -- Those who are not back yet use their part elsewhere, so that here each permit costs more.
  local cost = isSettling and interval * expected / math.max(1, here) or interval
  bound('tat', from + ${HORIZON_MS} + (burst + 1) * cost)
  local tat = number('tat')
  local horizon = isSettling and ${RECOVERY_HORIZON_MS} or state.tentative == '1' and ${TENTATIVE_HORIZON_MS} or ${HORIZON_MS}
  local most = math.min(want, ${MAX_PERMITS_PER_REPLY}, math.max(1, math.floor(horizon / cost / present)))
  for _ = 1, most do
    local permitAt = math.max(from, tat - (burst - 1) * interval)
    if permitAt > now + horizon then
      again = permitAt - now - horizon + 1
      break
    end
    permitTimes[#permitTimes + 1] = instant(permitAt - now)
    tat = math.max(tat, permitAt) + cost
  end
  if #permitTimes > 0 then
    put('tat', instant(tat))
    again = 0
  end
end
`;

const REPORTS = `
local reports, readUpTo, keptFrom = '', number('readUpTo'), 0
if leads then
  -- After a loss of data a position is higher than those before it.
  if readUpTo == 0 then readUpTo = math.floor(now) * 100 end
  local older, kept, newReports = state.olderReports or '', state.readReports or '', state.mail or ''
  local unread = readUpTo - tonumber(ARGV[14])
  keptFrom = readUpTo - #older - #kept
  if unread > 0 then reports = string.sub(older .. kept, -unread) end
  reports = reports .. newReports
  if newReports ~= '' then
    if #kept + #newReports > ${KEPT_REPORTS_LENGTH} then
      put('olderReports', kept)
      kept = ''
    end
    put('readReports', kept .. newReports)
    put('mail', '')
  end
  readUpTo = readUpTo + #newReports
  put('readUpTo', string.format('%.0f', readUpTo))
end
`;

const REPLY = `
redis.call('HSET', key, unpack(written))
for _, field in ipairs(gone) do
  if not state[field] then redis.call('HDEL', key, field) end
end
redis.call('PEXPIRE', key, string.format('%.0f', keptMs))
local held, epoch, rateText = state.held or '0', state.epoch or '0', state.rate or ''
local pausedUntil = instant(number('pausedUntil'))
if mustPublish then redis.call('PUBLISH', key, table.concat({epoch, held, pausedUntil, rateText, state.burst or '1', present}, ' ')) end
return {
  instant(now), leads and '1' or '0', epoch, held, pausedUntil, rateText, state.burst or '1',
  tostring(present), tostring(rank), instant(oldest), instant(again), table.concat(permitTimes, ' '), reports,
  state.version or '0', (state.version or '0') ~= ARGV[11] and state.model or '',
  instant(math.max(0, leaseEnd() - now)), state.tentative or '0', instant(number('lostAt')),
  string.format('%.0f', readUpTo), string.format('%.0f', keptFrom), table.concat(grants, '\\n'),
}
`;

export const EXCHANGE_SCRIPT = defineScript(buildExchangeScript());
