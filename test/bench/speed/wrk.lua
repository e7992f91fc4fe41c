-- For wrk: a POST with a body of as many bytes as the first argument says, or with 0 a GET; with a file as the second one, its
-- lines ("METHOD path") in turns instead. The figures come as one line of JSON.

function init(args)
  local bytes = tonumber(args[1])
  if bytes > 0 then
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/json"
    wrk.body = '{"text":"' .. string.rep("x", bytes - 11) .. '"}'
  end
  if args[2] then take_turns(args[2]) end
end

function take_turns(file)
  local texts = {}
  for line in io.lines(file) do
    local method, path = line:match("^(%S+) (%S+)$")
    texts[#texts + 1] = wrk.format(method, path)
  end
  local turn = 0
  request = function()
    turn = turn % #texts + 1
    return texts[turn]
  end
end

function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format('{"requests":%d,"durationUs":%d,"p50Us":%d,"p99Us":%d,"failed":%d}\n', summary.requests,
    summary.duration, latency:percentile(50), latency:percentile(99), failed))
end
