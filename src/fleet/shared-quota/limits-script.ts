/**
 * The part of the exchange script (quota-script.ts) for declared limits: counts what a replica reports, and leases permits. A limit is known by
 * the calls that count for it and the instants at which they stop to: the script knows nothing of windows and time zones.
 */

/** A replica without an exchange for this time is gone. */
export const REPLICA_TIMEOUT_MS = 10_000;
/** The hash is gone this long after its last exchange, or after the last call of a declared limit. */
const KEY_TTL_MS = 600_000;
/** Entries of a declared limit: a sliding window has about a hundred steps. */
const MAX_COUNT_ENTRIES = 256;
/** Counts of other replicas may end later by this: a replica follows the upstream's clock where that is stated. */
const MAX_COUNT_AHEAD_MS = 600_000;
/** When a replica was found to be gone its permits have been counted; the sequence number is kept for this time. */
const GONE_REPLICA_KEPT_MS = 600_000;
/** When a replica asks again that got no permit of a declared limit: when the next call stops to count, within these bounds. */
const MIN_GRANT_RETRY_MS = 20;
const MAX_GRANT_RETRY_MS = 2_000;
/** Until all replicas are back each keeps to its part, of which it tells this often; and after a report that did not count. */
const SETTLING_RETRY_MS = 100;

/** Declared limits: what this replica reports, each report once. */
export const LIMIT_COUNTS = `
local declared = ARGV[15] ~= '' and cjson.decode(ARGV[15]) or nil
local heldHere, isLost, keptMs = {}, false, ${KEY_TTL_MS}
local function addCalls(limit, at, calls)
  at = math.floor(at + 0.5)
  if at > now and at <= limit.latest then
    limit.entries[at] = math.min(math.max(0, (limit.entries[at] or 0) + calls), 1e9)
    limit.isChanged = true
  end
end
local function readHeld(owner)
  local at, sequence, lines = string.match(state['held:' .. owner] or '', '^(%d+) (%d+)\\n(.*)$')
  local held = {}
  if not (toNumber(at) and toNumber(sequence)) then return nil, nil, held end
  for amount, ends, name in string.gmatch(lines, '(%d+) (%d+)\\t([^\\n]+)\\n') do
    held[name] = {amount = tonumber(amount), ends = tonumber(ends)}
  end
  return toNumber(at), toNumber(sequence), held
end
local function writeHeld(owner, at, sequence, held)
  local lines = {string.format('%.0f %.0f\\n', at, sequence)}
  for name, one in pairs(held) do lines[#lines + 1] = string.format('%.0f %.0f\\t%s\\n', one.amount, one.ends, name) end
  put('held:' .. owner, table.concat(lines))
end
local function writeCounts(limit)
  local times, texts, merged = {}, {}, 0
  for at in pairs(limit.entries) do times[#times + 1] = at end
  table.sort(times)
  for index, at in ipairs(times) do
    merged = merged + limit.entries[at]
    -- More than these are not ours: the earliest count longer.
    if index >= #times - ${MAX_COUNT_ENTRIES} + 1 and merged > 0 then
      texts[#texts + 1] = string.format('%.0f %.0f', at, merged)
      merged = 0
    end
  end
  limit.text = table.concat(texts, ' ')
  if limit.isChanged then put('limit:' .. limit.key, limit.text) end
end
if declared then
  local lastAt, last, before = readHeld(id)
  -- Sent before a connection was lost, and overtaken since. A replica exchanges more often than it times out: an older entry is not its own.
  local isRecent = last and lastAt <= now and now - lastAt <= ${REPLICA_TIMEOUT_MS}
  if isRecent and last > declared.sequence and last < declared.sequence + 100 then declared.limits = {} end
  local isMissing = false
  for _, limit in ipairs(declared.limits) do
    isMissing = isMissing or (declared.sequence > 1 and not limit.isNew and not (before[limit.key] and last >= declared.sequence - 1))
  end
  isLost = isMissing and not declared.reportsKnown
  for _, limit in ipairs(declared.limits) do
    limit.entries, limit.latest = {}, limit.heldUntil + ${MAX_COUNT_AHEAD_MS}
    keptMs = math.max(keptMs, limit.latest - now)
    for at, calls in string.gmatch(state['limit:' .. limit.key] or '', '(%d+) (%d+)') do
      addCalls(limit, tonumber(at), tonumber(calls))
    end
    limit.isChanged = false
    if isMissing then
      for _, entry in ipairs(limit.known) do
        addCalls(limit, entry[1], math.max(0, entry[2] - (limit.entries[math.floor(entry[1] + 0.5)] or 0)))
      end
    end
    if not isLost and not (before[limit.key] and last == declared.sequence) then
      for _, entry in ipairs(limit.counts) do addCalls(limit, entry[1], entry[2]) end
    end
    if ARGV[3] == 'leaving' then
      addCalls(limit, limit.heldUntil, limit.held)
      writeCounts(limit)
    end
    heldHere[limit.key] = {amount = limit.held, ends = limit.heldUntil}
  end
end
`;

/** Declared limits: the permits of replicas that are gone may have been used; of what is left each replica gets ever smaller blocks. */
export const LIMIT_GRANTS = `
local grants = {}
if declared and #declared.limits > 0 then
  for field, value in pairs(state) do
    local owner, name = string.match(field, '^held:(.*)$'), string.match(field, '^limit:(.*)$')
    if name and not heldHere[name] and (toNumber(string.match(value, '(%d+) %d+$')) or 0) <= now then remove(field) end
    if owner and owner ~= id then
      local at, sequence, held = readHeld(owner)
      local isGone, isChanged = sequence and now - at > ${REPLICA_TIMEOUT_MS} and not isRecovering, sequence and at > now
      for _, limit in ipairs(declared.limits) do
        local one = held[limit.key]
        local amount = one and math.min(one.amount, limit.calls) or 0
        if isGone and amount > 0 then
          addCalls(limit, one.ends, amount)
          one.amount, isChanged = 0, true
        else
          limit.heldByOthers = (limit.heldByOthers or 0) + amount
        end
      end
      if not sequence or (isGone and now - at > ${GONE_REPLICA_KEPT_MS}) then
        remove(field)
      elseif isChanged then
        writeHeld(owner, math.min(at, now), sequence, held)
      end
    end
  end
  local grantsAgain, isShort, canGrant = 0, false, not (isLost or isSettling)
  for _, limit in ipairs(declared.limits) do
    writeCounts(limit)
    local used, first = 0, now + ${MAX_GRANT_RETRY_MS}
    for at, calls in pairs(limit.entries) do
      used = used + calls
      if calls > 0 then first = math.min(first, at) end
    end
    limit.granted, limit.heldByOthers = 0, limit.heldByOthers or 0
    local left = limit.calls - limit.reserve - used - limit.heldByOthers - limit.held
    -- A call needs permits of all limits of all calls: replicas that each held some of one would wait for each other.
    if canGrant and not limit.isOfOperation and limit.leased < 1 and left < 1 then isShort = true end
    if limit.want > 0 and left >= 1 and canGrant then
      limit.granted = math.min(limit.want, math.max(1, math.floor(left / (2 * present))))
    elseif limit.want > 0 then
      grantsAgain = math.max(grantsAgain, first - now + 1, ${MIN_GRANT_RETRY_MS})
    end
  end
  for index, limit in ipairs(declared.limits) do
    local givesBack = isShort and not limit.isOfOperation
    if givesBack then limit.granted = 0 end
    heldHere[limit.key].amount = limit.held + (givesBack and -limit.leased or limit.granted)
    grants[index] = string.format('%.0f %.0f %s\\t%s', limit.granted, limit.heldByOthers, limit.text, limit.key)
  end
  -- A replica whose report was not counted gives it again.
  writeHeld(id, now, isLost and 0 or declared.sequence, heldHere)
  if not canGrant then
    grants, grantsAgain = {}, isLost and ${MIN_GRANT_RETRY_MS} or ${SETTLING_RETRY_MS}
  end
  table.insert(grants, 1, instant(grantsAgain))
elseif declared then
  grants = {instant(${SETTLING_RETRY_MS})}
end
`;
