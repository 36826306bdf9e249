/** Writes what became of each test file to file descriptor 3, as soon as the file is finished. */
import { writeSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'
import { ROOT } from '../tidy/tree.ts'
import type { FileResult } from './results.ts'

const RESULTS_FD = 3

export default class MatrixReporter implements Reporter {
  onTestModuleEnd(module: TestModule): void {
    writeSync(RESULTS_FD, `${JSON.stringify(resultOf(module))}\n`)
  }
}

function resultOf(module: TestModule): FileResult {
  const count = { passed: 0, failed: 0, skipped: 0 }
  const failures: string[] = []
  for (const test of module.children.allTests()) {
    const { state } = test.result()
    const outcome = state === 'pending' ? 'failed' : state
    count[outcome]++
    if (outcome === 'failed') failures.push(test.fullName)
  }
  // A file that cannot be loaded, or whose hooks fail, is a failure too.
  if (module.state() === 'failed' && count.failed === 0) {
    count.failed = 1
    failures.push('the file itself')
  }
  return { file: module.moduleId.slice(ROOT.length).replaceAll('\\', '/'), ...count, failures }
}
