/** Says as the very last line how many tests passed, failed and were skipped: for people and for whoever reads logs. */
import type { Reporter, TestModule } from 'vitest/node'

export class Tally implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
    for (const module of modules) {
      const before = count.failed
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        count[state === 'pending' ? 'failed' : state]++
      }
      // A file that cannot be loaded, or whose hooks fail, is a failure too.
      if (module.state() === 'failed' && count.failed === before) count.failed++
    }
    // Other reporters still write, and the global tear-down may.
    process.once('exit', () => console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`))
  }
}
