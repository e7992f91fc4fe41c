local now = tonumber(ARGV[#ARGV])
local key, id = KEYS[1], ARGV[1]
local flat, state, written = redis.call('HGETALL', key), {}, {}
for i = 1, #flat, 2 do state[flat[i]] = flat[i + 1] end
local function number(field) return tonumber(state[field] or '0') or 0 end
local function put(field, value)
  state[field] = value
  written[#written + 1] = field
  written[#written + 1] = value
end
local function instant(value) return string.format('%.3f', value) end
local function remove(field)
  state[field] = nil
  redis.call('HDEL', key, field)
end
local news = false

if ARGV[3] == 'leaving' then
  remove('r:' .. id)
  if state.leader == id then remove('leader') end
  return {}
end
local present, before, oldest = 1, {}, now
for field, seen in pairs(state) do
  if string.sub(field, 1, 2) == 'r:' and field ~= 'r:' .. id then
    if now - tonumber(seen) > 10000 then
      redis.call('HDEL', key, field)
    else
      present = present + 1
      oldest = math.min(oldest, tonumber(seen))
      before[string.sub(field, 3)] = field < 'r:' .. id
    end
  end
end
put('r:' .. id, instant(now))
if not state.born then put('born', instant(now)) end
if tonumber(ARGV[6]) > number('expected') and now < number('born') + 5000 then put('expected', ARGV[6]) end
local isSettling = now < number('born') + 5000 and present < number('expected')

local function leaseEnd() return number('leaderUntil') - (state.held == '1' and 400 or 0) end
local leads = state.leader == id
if not leads then
  local isVacant = not state.leader or leaseEnd() <= now
  leads = isVacant or (state.leaderIdle == '1' and ARGV[3] == 'active')
end
if leads then
  put('leader', id)
  put('leaderUntil', instant(now + (ARGV[3] == 'idle' and 10000 or 900)))
  put('leaderIdle', ARGV[3] == 'idle' and '1' or '0')
end
-- The leader is the last, so that the first one looks after it.
local rank = 0
for other, isBefore in pairs(before) do
  if leads or (isBefore and other ~= state.leader) then rank = rank + 1 end
end

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
if ARGV[8] ~= '' then
  -- Without a limit each replica pauses by itself, and only a stated wait holds for the others. All report, so that the leader learns.
  if number('rate') == 0 then
    news = true
  elseif tonumber(ARGV[8]) > number('pausedAt') then
    put('epoch', tostring(number('epoch') + 1))
    put('pausedAt', instant(now))
    put('held', '1')
    -- The slots given away are void, and nothing is saved up.
    if number('rate') > 0 then put('tat', instant(now + number('burst') * intervalOf(number('rate')))) end
    news = true
  end
  if ARGV[9] ~= '' and now + tonumber(ARGV[9]) > number('pausedUntil') then
    put('pausedUntil', instant(now + tonumber(ARGV[9])))
    news = true
  end
end
if ARGV[7] ~= '' and not leads and #(state.mail or '') < 60000 then
  put('mail', (state.mail or '') .. ARGV[7])
end

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
  news = true
end

local slots, again, rate, burst = {}, 0, number('rate'), number('burst')
local want = tonumber(ARGV[2])
if want > 0 and state.held == '1' then
  again = 250
elseif want > 0 and rate > 0 then
  local interval, tat, from = intervalOf(rate), number('tat'), math.max(now, number('pausedUntil'))
  -- Those who are not back yet use their part elsewhere, so that here each permit costs more.
  local cost = isSettling and interval * number('expected') / present or interval
  local horizon = isSettling and 400 or state.tentative == '1' and 1000 or 4000
  local most = math.min(want, 16, math.max(1, math.floor(horizon / cost / present)))
  for _ = 1, most do
    local slot = math.max(from, tat - (burst - 1) * interval)
    if slot > now + horizon then
      again = slot - now - horizon + 1
      break
    end
    slots[#slots + 1] = instant(slot - now)
    tat = math.max(tat, slot) + cost
  end
  if #slots > 0 then
    put('tat', instant(tat))
    again = 0
  end
end

local mail = ''
if leads and state.mail and state.mail ~= '' then
  mail = state.mail
  put('mail', '')
end
redis.call('HSET', key, unpack(written))
redis.call('PEXPIRE', key, 600000)
local held, epoch, known = state.held or '0', state.epoch or '0', state.rate or ''
local pausedUntil = instant(number('pausedUntil'))
if news then redis.call('PUBLISH', key, table.concat({epoch, held, pausedUntil, known, state.burst or '1'}, ' ')) end
return {
  instant(now), leads and '1' or '0', epoch, held, pausedUntil, known, state.burst or '1',
  tostring(present), tostring(rank), instant(oldest), instant(again), table.concat(slots, ' '), mail,
  state.version or '0', (state.version or '0') ~= ARGV[11] and state.model or '',
  instant(math.max(0, leaseEnd() - now)), state.tentative or '0',
}
