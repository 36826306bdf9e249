-- Requests for random rows, and a summary that a program can read.
-- Arguments: first=<id> last=<id>, else the URL's own path is requested; method=<method> body=<text>, else it is a GET.

local PREPARED = 4096
local threads = 0
local requests = {}
local at = 0

function setup(thread)
  threads = threads + 1
  thread:set('number', threads)
end

function init(args)
  local given = {}
  for _, argument in ipairs(args) do
    local name, value = argument:match('^(%w+)=(.*)$')
    given[name] = value
  end
  local first, last = tonumber(given.first), tonumber(given.last)
  math.randomseed(os.time() * 64 + number)
  -- Written once, so that the generator's own work stays small.
  for i = 1, first and PREPARED or 1 do
    local path = wrk.path
    if first then path = path .. math.random(first, last) end
    requests[i] = wrk.format(given.method, path, nil, given.body)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local e = summary.errors
  local p50, p99 = latency:percentile(50), latency:percentile(99)
  print(string.format('RESULT %d %d %d %d', summary.requests, summary.duration, p50, p99))
  print(string.format('FAILED connect %d, read %d, write %d, status %d, timeout %d',
    e.connect, e.read, e.write, e.status, e.timeout))
end
