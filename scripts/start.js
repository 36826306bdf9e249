/** `npm start`: runs the demo from a fresh clone or any later state. Arguments are passed to `svc demo`. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { endWithParent, ensureBuilt, ensureInstalled, main, root } from './tree.js'

await main(async () => {
  ensureInstalled()
  ensureBuilt()
  endWithParent()
  // In this process, so that signals reach the demo and its exit status is this script's.
  const script = join(root, 'dist/cli/main.js')
  process.argv.splice(1, 1, script, 'demo')
  await import(pathToFileURL(script).href)
})
