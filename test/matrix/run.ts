/** `npm run test:matrix`: see `--help`. */
import { join } from 'node:path'
import { ROOT } from '../tidy/tree.ts'
import { runMatrix } from './matrix.ts'

const STOPPED = 130

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())

const status = await runMatrix(process.argv.slice(2), {
  cache: join(ROOT, '.cache/matrix'),
  page: join(ROOT, 'docs/reference/compatibility.md'),
  now: Date.now(),
  signal: stop.signal,
  print: line => console.log(line),
})
process.exitCode = stop.signal.aborted ? STOPPED : status
