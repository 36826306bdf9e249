/**
 * The scripts that count units in the store. A script runs alone, so a count is never read by another gateway
 * between its parts.
 */

/** Tokens that a gateway leases in advance, so that most requests need no message to the store. */
const TOKENS_IN_ADVANCE_MAX = 16

/**
 * A bucket is one number: the time at which it will be full again, in milliseconds of the store's clock. A
 * full bucket has no key. `KEYS`: the bucket. `ARGV`: wanted tokens, tokens per second, tokens in a full
 * bucket. Returns the tokens that were taken.
 */
export const TAKE_TOKENS: string = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local wanted, rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local left = math.floor(burst - (full_at - now) * rate / 1000 + 0.000001)
local taken = math.min(left, math.max(wanted, math.min(${TOKENS_IN_ADVANCE_MAX}, math.floor(left / 4))))
if taken <= 0 then return 0 end
full_at = full_at + taken * 1000 / rate
redis.call('SET', KEYS[1], string.format('%.3f', full_at), 'PX', math.ceil(full_at - now) + 1000)
return taken
`

/** Puts tokens back. `KEYS`: the bucket. `ARGV`: tokens, tokens per second. */
export const GIVE_TOKENS: string = `
local full_at = tonumber(redis.call('GET', KEYS[1]) or '0')
if full_at == 0 then return 0 end
full_at = full_at - ARGV[1] * 1000 / ARGV[2]
redis.call('SET', KEYS[1], string.format('%.3f', full_at), 'KEEPTTL')
return 0
`

/**
 * The permits of a holder are a hash: the units of each gateway by its id. Those of a gateway whose sign of
 * life has expired are removed. `KEYS`: the hash. `ARGV`: the gateway, wanted permits, permits of a holder,
 * the prefix of the signs of life. Returns the permits that were taken.
 */
export const TAKE_PERMITS: string = `
local taken = 0
local units = redis.call('HGETALL', KEYS[1])
for at = 1, #units, 2 do
  if units[at] ~= ARGV[1] and redis.call('EXISTS', ARGV[4] .. units[at]) == 0 then
    redis.call('HDEL', KEYS[1], units[at])
  else
    taken = taken + tonumber(units[at + 1])
  end
end
local granted = math.min(tonumber(ARGV[2]), tonumber(ARGV[3]) - taken)
if granted <= 0 then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[1], granted)
redis.call('PEXPIRE', KEYS[1], 86400000)
return granted
`

/** Adds units to those of a gateway, or removes them. `KEYS`: the hash. `ARGV`: the gateway, units. */
export const ADD_PERMITS: string = `
if redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2]) <= 0 then redis.call('HDEL', KEYS[1], ARGV[1])
else redis.call('PEXPIRE', KEYS[1], 86400000) end
return 0
`
