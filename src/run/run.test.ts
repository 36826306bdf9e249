import { expect, test } from 'vitest'
import { catalogOf } from '../../test/support/model.ts'
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
const DATABASE: Database = { run: unused, describe: unused, stream: unused }
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

test.each(HOWS)('a request that has used up its time sends nothing more: %s', async (_, start) => {
  await expect(start(runner, { ms: 100 })).rejects.toMatchObject({
    code: 'TIMEOUT',
    message: 'the query took longer than statement_timeout_ms allows and was cancelled',
  })
  await expect((async () => start(runner, { ms: 99 }))()).rejects.toThrow('something was sent')
})
