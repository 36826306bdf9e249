/** `npm test`: runs all tests from a fresh clone or any later state. Arguments are passed to vitest. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { endWithParent, ensureBuilt, ensureInstalled, main, root } from './tree.js'

await main(() => {
  ensureInstalled()
  // Some tests run the built program.
  ensureBuilt()
  endWithParent()
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, 'run', ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal === null ? 1 : 130)
  })
})
