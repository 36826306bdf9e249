import { describe, expect, test } from 'vitest'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import { buildFunctionReach } from '../catalog/function-reach.ts'
import type { FunctionReach } from '../catalog/model.ts'
import { catalogueStatement } from '../compile/derive.ts'
import type { CallStatement, StreamStatement, WriteStatement } from '../compile/statement.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import type { Database } from '../postgres/types.ts'
import { createRunner, type Runner, type ServerTime } from './run.ts'
import { createSessionReset } from './session-reset.ts'
import { createSettings } from './settings.ts'

const unused = (): never => {
  throw new Error('something was sent')
}
const DATABASE: Database = { run: unused, describe: unused, stream: unused, begin: unused }
const READ = catalogueStatement('SELECT 1', [])
const WRITE = { ...READ, statement: { ...READ.statement, kind: 'write' } as unknown as WriteStatement }
const CALL = { ...READ, statement: { ...READ.statement, kind: 'call' } satisfies CallStatement }
const STREAM = { ...READ, statement: { ...READ.statement, kind: 'stream' } satisfies StreamStatement }

const runner = createRunner({
  database: DATABASE,
  settings: createSettings({ statementTimeoutMs: 100 }),
  reset: createSessionReset(() => catalogOf()),
  onStaleSchema() {},
  announcements: null,
})

const HOWS: readonly (readonly [string, (runner: Runner, worked: ServerTime) => Promise<unknown>])[] = [
  ['read', (of, worked) => of.read(ANONYMOUS, [READ], worked).result],
  ['write', (of, worked) => of.write(ANONYMOUS, [WRITE], worked).result],
  ['call', (of, worked) => of.call(ANONYMOUS, CALL, { access: 'read write', format: 'text' }, worked).result],
  ['parse', (of, worked) => of.parse(ANONYMOUS, CALL.statement, worked).result],
  ['stream', async (of, worked) => of.stream(ANONYMOUS, STREAM, worked).next()],
]

test.each(HOWS)('a request whose time is used up sends no statement: %s', async (_, start) => {
  await expect(start(runner, { ms: 100 })).rejects.toMatchObject({
    code: 'TIMEOUT',
    message: 'the query took longer than statement_timeout_ms allows and was cancelled',
  })
  await expect((async () => start(runner, { ms: 99 }))()).rejects.toThrow('something was sent')
})

describe('a write', () => {
  const TABLE = tableOf('notes', { id: 'int4' })
  const INSERT = {
    ...WRITE,
    statement: {
      ...WRITE.statement,
      dependencies: {
        ...WRITE.statement.dependencies,
        writes: [{ table: { schema: 'public', name: 'notes' }, operation: 'insert' }],
      },
    } as unknown as WriteStatement,
  }
  const DEFERRED = ['SET CONSTRAINTS ALL IMMEDIATE']
  const RESET = ['RESET ALL', 'RESET ROLE', 'SELECT pg_advisory_unlock_all()', 'UNLISTEN *', 'DISCARD TEMP']

  test.each<[string, Partial<FunctionReach>, readonly string[], boolean]>([
    ['of a table without functions is the settings and the statement', {}, [], false],
    ['that can defer a constraint ends with it', { deferring: new Set([TABLE.oid]) }, DEFERRED, true],
    [
      'that can run only functions that leave nothing does not',
      buildFunctionReach([{ relation: TABLE.oid, read: false, leaves: false }], [], [], []),
      [],
      false,
    ],
    ['of another table than one that can does not', { deferring: new Set([TABLE.oid + 1]) }, [], false],
    [
      'that can run a function ends with a reset',
      buildFunctionReach([{ relation: TABLE.oid, read: false, leaves: true }], [], [], []),
      [...DEFERRED, ...RESET],
      false,
    ],
  ])('%s', async (_, reach, after, hasDeadline) => {
    const catalog = catalogOf(TABLE)
    const sent: string[] = []
    const recording = createRunner({
      database: {
        ...DATABASE,
        run(commands) {
          sent.push(...commands.map(({ text }) => text))
          return { result: Promise.resolve([]), cancel() {} }
        },
      },
      settings: createSettings({ statementTimeoutMs: 100 }),
      reset: createSessionReset(() => ({ ...catalog, functionReach: { ...catalog.functionReach, ...reach } })),
      onStaleSchema() {},
      announcements: null,
    })
    await recording.write(ANONYMOUS, [INSERT], { ms: 0 }).result
    const [settings, statement, ...rest] = sent
    expect([settings, statement]).toEqual([expect.stringContaining('set_config'), 'SELECT 1'])
    expect(rest.filter(text => !text.includes('statement_timeout'))).toEqual(after)
    expect(rest.some(text => text.includes('statement_timeout'))).toBe(hasDeadline)
  })
})
