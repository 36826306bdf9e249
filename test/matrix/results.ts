/** The results of a lane: one line of JSON per finished test file, so that an interrupted run can resume. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { appendFile, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { filesBelow, ROOT, read } from '../tidy/tree.ts'

export interface FileResult {
  readonly file: string
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** Full titles of the failed tests. */
  readonly failures: readonly string[]
  /** The reasons for skipped tests, one entry per test. */
  readonly reasons: readonly string[]
}

export interface Sum {
  readonly files: number
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly reasons: readonly string[]
}

/** All test files, relative to the root. */
export function testFiles(): readonly string[] {
  return sources().filter(isTest)
}

/** A hash of everything that affects all test files: sources, test support, packages. */
export function sharedHash(): string {
  return hashOf([...sources().filter(name => !isTest(name)), 'package-lock.json', 'vitest.config.ts'])
}

/**
 * A hash of a test file, empty if it does not exist. Results are stored with it, so a repaired test does not
 * invalidate other results.
 */
export function fileHash(file: string): string {
  return existsSync(join(ROOT, file)) ? hashOf([file]) : ''
}

function hashOf(files: readonly string[]): string {
  const hash = createHash('sha256')
  for (const name of files) hash.update(`${name}\0${read(name)}\0`)
  return hash.digest('hex').slice(0, 16)
}

/** The matrix itself does not affect results. */
function sources(): readonly string[] {
  return [...filesBelow('src'), ...filesBelow('test')].filter(name => !isOfMatrix(name) || isTest(name))
}

function isTest(file: string): boolean {
  return file.endsWith('.test.ts')
}

function isOfMatrix(file: string): boolean {
  return file.startsWith('test/matrix/')
}

/** The latest result of each unchanged file. A line truncated by a killed run is ignored. */
export async function readResults(
  path: string,
  hash: (file: string) => string = fileHash,
): Promise<Map<string, FileResult>> {
  const results = new Map<string, FileResult>()
  for (const line of (await readFile(path, 'utf8').catch(() => '')).split('\n')) {
    const entry = parseEntry(line)
    if (entry === null) continue
    const { hash: known, ...result } = entry
    if (hash(result.file) === known) results.set(result.file, result)
  }
  return results
}

type Entry = FileResult & { readonly hash: string }

function parseEntry(line: string): Entry | null {
  try {
    return JSON.parse(line) as Entry
  } catch {
    return null
  }
}

/** @param hash The hash of the file when its test started. */
export async function addResult(path: string, result: FileResult, hash: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  // Starts a new line, in case the last one was truncated.
  await appendFile(path, `\n${JSON.stringify({ ...result, hash } satisfies Entry)}`)
}

export function sumOf(results: Iterable<Omit<FileResult, 'file' | 'failures'>>): Sum {
  const sum = { files: 0, passed: 0, failed: 0, skipped: 0 }
  const reasons: string[] = []
  for (const result of results) {
    sum.files++
    sum.passed += result.passed
    sum.failed += result.failed
    sum.skipped += result.skipped
    reasons.push(...result.reasons)
  }
  return { ...sum, reasons }
}
