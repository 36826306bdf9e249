import { availableParallelism } from 'node:os'
import { defineConfig, type ViteUserConfig } from 'vitest/config'
import { SummaryReporter } from './test/support/summary-reporter.ts'

const config: ViteUserConfig = defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'console/src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    // Database tests wait more than they compute; vitest alone would leave one of two cores idle.
    maxWorkers: Math.max(2, availableParallelism()),
    reporters: ['default', new SummaryReporter()],
    testTimeout: 20_000,
    // The first database test of a run waits for the cluster to be made.
    hookTimeout: 60_000,
  },
})

export default config
