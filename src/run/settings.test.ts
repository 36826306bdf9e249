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

test('settings that are not sent are in no command, and appear again once they are', () => {
  let unsent: ReadonlySet<string> = new Set()
  const settings = createSettings({ statementTimeoutMs: 1_000, unsent: () => unsent })
  const session = {
    settings: [['request.headers', '{}'] as const, ['role', 'author'] as const],
    ...{ timeoutMs: null, before: null, rollsBack: false, replied() {} },
  }
  for (const identity of [ANONYMOUS, { ...ANONYMOUS, session }]) {
    const commands = () => [
      settings.for(identity, 'read only'),
      settings.for(identity, 'read write', 1),
      settings.numbered(identity),
    ]
    const before = commands()
    unsent = new Set(['app.current_role', 'request.headers'])
    const texts = commands().map(({ text }) => text)
    for (const text of texts) {
      expect(text).toContain("'app.current_tenant_id', $1")
      expect(text).not.toMatch(/app.current_role|request.headers/)
      expect(text.includes("'role'")).toBe(identity !== ANONYMOUS)
    }
    unsent = new Set()
    expect(commands()).toEqual(before)
  }
})

test('more settings than a function can have arguments are set by several conditions', () => {
  const names = Array.from({ length: 250 }, (_, index) => `app.settings.n${index}`)
  const session = {
    settings: names.map(name => [name, 'x'] as const),
    ...{ timeoutMs: null, before: null, rollsBack: false, replied() {} },
  }
  const { text } = createSettings({ statementTimeoutMs: 1_000 }).for({ ...ANONYMOUS, session }, 'read only')
  const conditions = text.split(' AND ')
  expect(conditions.map(condition => condition.split('set_config(').length - 1)).toEqual([100, 100, 59])
  for (const name of names) expect(text).toContain(`set_config('${name}', `)
  expect(text).toContain('$259, true)')
})
