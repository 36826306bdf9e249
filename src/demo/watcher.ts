/**
 * A small process between this one and PostgreSQL. It starts the server, forwards signals, and stops the
 * server when its standard input ends: because this process closed it, or died for any reason, including
 * SIGKILL. It runs in its own session, so Ctrl-C in the terminal reaches this process and not the server, and
 * the shutdown order is controlled here.
 */

export interface WatcherTask {
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly uid?: number
  readonly gid?: number
  /** A folder to remove when the server has ended because its parent is gone. */
  readonly removeWhenOrphaned: string | null
  /** A fast shutdown that takes longer than this becomes an immediate one. */
  readonly stopTimeoutMs: number
}

/**
 * A mark in the watcher's command line, so that the next start can distinguish a watched server from an
 * orphan.
 */
export const WATCHER_MARK = 'svc-gateway-watcher'

/**
 * The program of the watcher, run by `node -e` with the task as JSON argument. It is a text, so that it works
 * from TypeScript sources and from dist. It reads lines that contain a signal, and writes `pid <n>` once the
 * server's process exists.
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
  if (orphaned && task.removeWhenOrphaned !== null) {
    rmSync(task.removeWhenOrphaned, { recursive: true, force: true, maxRetries: 5 })
  }
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
