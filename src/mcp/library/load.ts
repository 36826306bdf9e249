/** Reads the knowledge that was built into the package. */
import { readFileSync } from 'node:fs'
import { brotliDecompressSync } from 'node:zlib'
import { type Library, openLibrary } from './library.ts'

/** The build writes it beside this compiled module. */
export const LIBRARY_FILE = 'library.json.br'

/** Loads the library that the build wrote. */
export function loadLibrary(): Library {
  return openLibrary(JSON.parse(brotliDecompressSync(readFileSync(new URL(LIBRARY_FILE, import.meta.url))).toString()))
}
