/** `npm run test:matrix`: the tests on other versions of PostgreSQL and Node (test/matrix/run.ts). */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { endWithParent, ensureBuilt, ensureInstalled, main, root } from './tree.js'

await main(() => {
  ensureInstalled()
  // Some tests run the program as users get it.
  ensureBuilt()
  endWithParent()
  const args = ['--import', 'tsx', join(root, 'test/matrix/run.ts'), ...process.argv.slice(2)]
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal === null ? 1 : 130)
  })
})
