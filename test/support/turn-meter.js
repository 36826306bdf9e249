/**
 * Loaded into a program before its own code (`--import`): measures how much CPU time its main thread uses
 * before it yields to the event loop, and serves the figures on a port that it writes to the file
 * `TURN_METER_FILE`. Wall-clock time would include other processes, and `process.cpuUsage()` other threads.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'

/** CPU time that this thread has used, in milliseconds. */
function threadCpuMs() {
  // proc_pid_schedstat(5): nanoseconds on the CPU, nanoseconds waiting, time slices.
  const [onCpu = ''] = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')
  return Number(onCpu) / 1e6
}

let isOn = false
let last = 0
let longestMs = 0
let totalMs = 0

function turn() {
  if (!isOn) return
  const now = threadCpuMs()
  const used = now - last
  longestMs = Math.max(longestMs, used)
  totalMs += used
  last = now
  setImmediate(turn)
}

const server = createServer((request, response) => {
  if (request.url === '/start') {
    ;[isOn, last, longestMs, totalMs] = [true, threadCpuMs(), 0, 0]
    setImmediate(turn)
    response.end()
    return
  }
  isOn = false
  response.end(JSON.stringify({ longestMs, totalMs }))
})
server.listen(0, '127.0.0.1', () => writeFileSync(process.env.TURN_METER_FILE ?? '', String(server.address().port)))
server.unref()
