import { expect, test } from 'vitest'
import { catalogOf } from '../../test/support/model.ts'
import { type BoundStatement, catalogueStatement, type Statement } from '../compile/statement.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import type { Database } from '../postgres/types.ts'
import { createRunner, type Runner, type ServerTime } from './run.ts'
import { createSessionReset } from './session-reset.ts'
import { createSettings } from './settings.ts'

const unused = (): never => {
  throw new Error('something was sent')
}
const DATABASE: Database = { run: unused, describe: unused, stream: unused }
const STATEMENT: BoundStatement = catalogueStatement('SELECT 1', [])

const runner = createRunner({
  database: DATABASE,
  settings: createSettings({ statementTimeoutMs: 100 }),
  reset: createSessionReset(() => catalogOf()),
  onStaleSchema() {},
  announcements: null,
})

const HOWS: readonly (readonly [string, (runner: Runner, worked: ServerTime) => Promise<unknown>])[] = [
  ['read', (of, worked) => of.read(ANONYMOUS, [STATEMENT], worked).result],
  ['write', (of, worked) => of.write(ANONYMOUS, [STATEMENT], worked).result],
  ['call', (of, worked) => of.call(ANONYMOUS, STATEMENT, { access: 'read write', format: 'text' }, worked).result],
  ['parse', (of, worked) => of.parse(ANONYMOUS, { text: 'SELECT 1' } as Statement, worked).result],
  ['stream', async (of, worked) => of.stream(ANONYMOUS, STATEMENT, worked).next()],
]

test.each(HOWS)('a request that has used up its time sends nothing more: %s', async (_, start) => {
  await expect(start(runner, { ms: 100 })).rejects.toMatchObject({
    code: 'TIMEOUT',
    message: 'the query took longer than statement_timeout_ms allows and was cancelled',
  })
  await expect((async () => start(runner, { ms: 99 }))()).rejects.toThrow('something was sent')
})
