/** `npm run build`: builds dist/ from src/, whether it is stale or not. */
import { build, ensureInstalled, main } from './tree.js'

await main(() => {
  ensureInstalled()
  build()
})
