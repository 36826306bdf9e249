/**
 * A step of the build: `node write.js ROOT` writes the knowledge of the repository at ROOT beside this file.
 */
import { writeFileSync } from 'node:fs'
import { brotliCompressSync } from 'node:zlib'
import { collectLibrary } from './collect.ts'
import { LIBRARY_FILE } from './load.ts'

const [, , root] = process.argv
if (root === undefined) throw new Error('write.js needs the root of the repository')
// A quarter smaller than with gzip.
const bytes = brotliCompressSync(JSON.stringify(collectLibrary(root)))
writeFileSync(new URL(LIBRARY_FILE, import.meta.url), bytes)
