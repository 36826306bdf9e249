/** What is known of a lane: one line of JSON per finished test file, so that a stopped run can resume. */
import { createHash } from 'node:crypto'
import { appendFile, mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { filesBelow, read } from '../tidy/tree.ts'

export interface FileResult {
  readonly file: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** Full names of the tests that failed. */
  readonly failures: readonly string[]
}

export interface Sum {
  readonly files: number
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** All test files, relative to the root. */
export function testFiles(): readonly string[] {
  return sources().filter(name => name.endsWith('.test.ts'))
}

/** A hash of everything that decides a result: sources, tests, packages. */
export function sourcesHash(): string {
  const hash = createHash('sha256')
  for (const name of [...sources(), 'package-lock.json', 'vitest.config.ts']) {
    hash.update(`${name}\0${read(name)}\0`)
  }
  return hash.digest('hex').slice(0, 16)
}

function sources(): readonly string[] {
  return [...filesBelow('src'), ...filesBelow('test')]
}

/** The newest result of each file. A line that was cut off when a run was killed is no result. */
export async function readResults(path: string): Promise<Map<string, FileResult>> {
  const results = new Map<string, FileResult>()
  for (const line of (await readFile(path, 'utf8').catch(() => '')).split('\n')) {
    const result = parseResult(line)
    if (result !== null) results.set(result.file, result)
  }
  return results
}

function parseResult(line: string): FileResult | null {
  try {
    return JSON.parse(line) as FileResult
  } catch {
    return null
  }
}

export async function addResult(path: string, result: FileResult): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  // Starts a new line, so that a line that was cut off does not spoil this one.
  await appendFile(path, `\n${JSON.stringify(result)}`)
}

export function sumOf(results: Iterable<FileResult>): Sum {
  const sum = { files: 0, passed: 0, failed: 0, skipped: 0 }
  for (const { passed, failed, skipped } of results) {
    sum.files++
    sum.passed += passed
    sum.failed += failed
    sum.skipped += skipped
  }
  return sum
}
