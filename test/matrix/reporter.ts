/** Writes the result of each test file to file descriptor 3 as soon as the file has finished. */
import { writeSync } from 'node:fs'
import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { ROOT } from '../tidy/tree.ts'
import type { FileResult } from './results.ts'

const RESULTS_FD = 3
const NO_REASON = 'no reason given'

export default class MatrixReporter implements Reporter {
  onTestModuleEnd(module: TestModule): void {
    writeResult(resultOf(module))
  }

  /** An error outside all tests fails the file in which it occurred. */
  onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly { message: string; VITEST_TEST_PATH?: string }[],
  ): void {
    for (const module of modules) {
      const own = errors.filter(error => error.VITEST_TEST_PATH === module.moduleId)
      if (own.length === 0) continue
      const result = resultOf(module)
      const failures = [...result.failures, ...own.map(error => `outside of every test: ${error.message}`)]
      writeResult({ ...result, failed: failures.length, failures })
    }
  }
}

function writeResult(result: FileResult): void {
  writeSync(RESULTS_FD, `${JSON.stringify(result)}\n`)
}

function resultOf(module: TestModule): FileResult {
  const count = { passed: 0, failed: 0, skipped: 0 }
  const failures: string[] = []
  const reasons: string[] = []
  for (const test of module.children.allTests()) {
    const { state } = test.result()
    const outcome = state === 'pending' ? 'failed' : state
    count[outcome]++
    if (outcome === 'failed') failures.push(test.fullName)
    if (outcome === 'skipped') reasons.push(reasonOf(test))
  }
  // A file that cannot be loaded, or whose hooks fail, counts as a failure too.
  if (module.state() === 'failed' && count.failed === 0) {
    count.failed = 1
    failures.push('the file itself')
  }
  return { file: module.moduleId.slice(ROOT.length).replaceAll('\\', '/'), ...count, failures, reasons }
}

/** The message with which a test skips itself, or the title of a suite that is skipped as a whole. */
function reasonOf(test: TestCase): string {
  const result = test.result()
  const note = result.state === 'skipped' ? result.note : undefined
  return note ?? / – skipped: (.*?)(?: >|$)/.exec(test.fullName)?.[1] ?? NO_REASON
}
