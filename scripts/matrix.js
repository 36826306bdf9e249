/** `npm run test:matrix`: the tests on other versions of PostgreSQL and Node (test/matrix/matrix.ts). */
import { endWithParent, ensureBuilt, ensureInstalled, main } from './tree.js'

await main(async () => {
  ensureInstalled()
  // Some tests run the built program.
  ensureBuilt()
  endWithParent()
  const { register } = await import('tsx/esm/api')
  register()
  await import('../test/matrix/run.ts')
})
