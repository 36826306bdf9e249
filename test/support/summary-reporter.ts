/**
 * A reporter that prints the number of passed, failed and skipped tests as the last line, for people and for
 * programs that read logs.
 */
import type { Reporter, TestModule } from 'vitest/node'

export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    for (const module of modules) {
      const before = count.failed
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        count[state === 'pending' ? 'failed' : state]++
      }
      // A file that cannot be loaded, or whose hooks fail, counts as a failure too.
      if (module.state() === 'failed' && count.failed === before) count.failed++
    }
    // Other reporters and the global tear-down may still print.
    process.once('exit', () => console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`))
  }
}
