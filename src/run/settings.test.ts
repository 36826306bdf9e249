import { expect, test } from 'vitest'
import { ANONYMOUS } from '../identity/authenticate.ts'
import { createSettings } from './settings.ts'

const textOf = (options: Parameters<typeof createSettings>[0]) =>
  createSettings(options).for(ANONYMOUS, 'read only').text

test('planner limits are set in each transaction behind a pooler, otherwise when the connection starts', () => {
  const names = ['join_collapse_limit', 'from_collapse_limit', 'geqo', 'geqo_threshold']
  const pooled = textOf({ statementTimeoutMs: 1_000, preparedStatements: false })
  const direct = textOf({ statementTimeoutMs: 1_000, preparedStatements: true })
  for (const name of names) {
    expect(pooled).toContain(`set_config('${name}', `)
    expect(direct).not.toContain(name)
  }
})
