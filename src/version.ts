/** The package's version, from the package.json next to `src` and `dist`. */
import { readFileSync } from 'node:fs'

const manifest: { readonly version: string } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
)

export const VERSION: string = manifest.version
