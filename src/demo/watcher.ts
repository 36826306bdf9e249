/**
 * A small process between us and PostgreSQL. It starts the server, passes on signals that it is told, and when its
 * standard input ends – we closed it, or died of anything, SIGKILL included – it stops the server and goes.
 * It leads a session of its own, so Ctrl-C in the terminal reaches us and not the server: we decide the order of closing.
 */

export interface WatcherTask {
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly uid?: number
  readonly gid?: number
  /** Removed when the server has ended because we were gone. */
  readonly removeWhenOrphaned: string | null
  /** A fast shutdown that takes longer than this becomes an immediate one. */
  readonly stopTimeoutMs: number
}

/** In the watcher's command line, by which the next start tells a watched server from an orphan. */
export const WATCHER_MARK = 'svc-gateway-watcher'

/**
 * Run by `node -e` with the task as JSON argument: text, because the same must work from TypeScript sources and from dist.
 * It reads lines that name a signal, and writes `pid <n>` once the server's process exists.
 */
export const WATCHER_PROGRAM: string = `process.title = '${WATCHER_MARK}'
const { spawn } = require('node:child_process')
const { rmSync } = require('node:fs')
const task = JSON.parse(process.argv[1])
const server = spawn(task.program, task.args, { cwd: task.cwd, uid: task.uid, gid: task.gid, stdio: ['ignore', 2, 2] })
let orphaned = false
process.stdout.on('error', () => {})
server.on('error', error => { console.error(String(error)); process.exit(1) })
server.on('spawn', () => process.stdout.write('pid ' + server.pid + '\\n'))
server.on('exit', code => {
  if (orphaned && task.removeWhenOrphaned !== null) rmSync(task.removeWhenOrphaned, { recursive: true, force: true, maxRetries: 5 })
  process.exit(code ?? 1)
})
function leave() {
  if (orphaned) return
  orphaned = true
  server.kill('SIGINT')
  setTimeout(() => server.kill('SIGQUIT'), task.stopTimeoutMs)
}
let text = ''
process.stdin.setEncoding('latin1')
process.stdin.on('data', chunk => {
  const lines = (text + chunk).split('\\n')
  text = lines.pop()
  for (const line of lines) server.kill(line)
})
process.stdin.on('close', leave)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, leave)
`
