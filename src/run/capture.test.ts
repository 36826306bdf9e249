/**
 * The changes of a write are reported once it is committed, and the caller gets the same response as without
 * capture (decision 0020).
 */
import { beforeEach, expect, test } from 'vitest'
import { compileWrite } from '../../test/support/compiled.ts'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import { EVERYTHING } from '../access/rights.ts'
import type { Table } from '../catalog/model.ts'
import { compile } from '../compile/compile.ts'
import { printCaptured } from '../compile/print-write.ts'
import type { BoundStatement, WriteStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import { parse } from '../language/syntax/parse.ts'
import type { Get } from '../language/tree/ast.ts'
import { DatabaseError } from '../postgres/errors.ts'
import { type ChangeListeners, captureChanges } from './capture.ts'
import type { ResultRow, Runner, RunningRequest, WriteResult } from './run.ts'

const of = (name: string) => tableOf(name, { id: 'text', a: 'text' }, { primaryKey: ['id'] })
const TABLE = of('notes')
const STORED = of('stored')
const OTHER = of('others')

const context = {
  // Before PostgreSQL 18 the old row is read first, so the values of `where` precede those of `set`.
  catalog: { ...catalogOf(TABLE, STORED, OTHER), serverVersion: 170_000 },
  rights: EVERYTHING,
  searchLanguage: 'english',
}

/** The meaning of each statement text: the plain write, or one that returns its changes. */
const meanings = new Map<string, 'plain' | 'reported'>()

function write(table: Table = TABLE): BoundStatement<WriteStatement> {
  const plain = compileWrite(`set \`${table.name}\` values a = 'new' where id = $1`, context)
  meanings.set(plain.text, 'plain')
  meanings.set(printCaptured(plain).text, 'reported')
  return { statement: plain, values: ['new', 'one'] }
}

const cells = (...texts: readonly (string | null)[]): ResultRow =>
  texts.map(text => (text === null ? null : Buffer.from(text)))

let asked: (readonly (readonly [string, readonly unknown[]])[])[]
let answers: (readonly WriteResult[] | Error)[]
let cancels: number
let reported: unknown[]
let runner: Runner
beforeEach(() => {
  asked = []
  answers = []
  cancels = 0
  reported = []
  const inner = {
    write(_: unknown, statements: readonly BoundStatement<WriteStatement>[]): RunningRequest<readonly WriteResult[]> {
      asked.push(statements.map(({ statement: { text }, values }) => [meanings.get(text) ?? text, values]))
      const answer = answers.shift()
      const result = answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer ?? [])
      return { result, cancel: () => void cancels++ }
    },
  } as unknown as Runner
  const watch: ChangeListeners = {
    listeners: table => ({
      memory: table === TABLE ? ['hook'] : [],
      outbox: table === STORED ? ['hook'] : [],
    }),
    wantsUnresolved: ({ table }) => table.name === 'notes',
    committed: (table, changes) => reported.push([table.resource, ...changes]),
    reportStored: names => reported.push(['stored', ...names]),
    reportUnreadable: table => reported.push([table.resource, 'unseen']),
  }
  runner = captureChanges(inner, watch)
})

const refused = (sqlstate: string, routine: string | null = 'somewhere') => {
  const fields = new Map([
    ['S', 'ERROR'],
    ['C', sqlstate],
    ['M', 'no'],
    ...(routine === null ? [] : [['R', routine] as const]),
  ])
  return new GatewayError('FORBIDDEN', 'no', { cause: new DatabaseError(fields as never) })
}

test('row images are removed from the response and reported, and unwatched writes are unchanged', async () => {
  answers.push([
    { rows: [cells('{"id":1}', 'UPDATE', '{"id":1,"a":2}', '{"id":1,"a":1}')], count: 1, txid: '7' },
    { rows: [cells('x')], count: 1, txid: '7' },
  ])
  const written = await runner.write(ANONYMOUS, [write(), write(OTHER)], { ms: 0 }).result
  expect(asked).toEqual([
    [
      ['reported', ['one', 'new']],
      ['plain', ['new', 'one']],
    ],
  ])
  expect(written).toEqual([
    { rows: [cells('{"id":1}')], count: 1, txid: '7' },
    { rows: [cells('x')], count: 1, txid: '7' },
  ])
  expect(reported).toEqual([['notes', { operation: 'UPDATE', after: '{"id":1,"a":2}', before: '{"id":1,"a":1}' }]])
})

test('a statement without columns returns no rows', async () => {
  answers.push([{ rows: [cells('DELETE', null, '{"id":1}'), cells('DELETE', null, '{"id":2}')], count: 2, txid: '7' }])
  expect(await runner.write(ANONYMOUS, [write()], { ms: 0 }).result).toEqual([{ rows: [], count: 2, txid: '7' }])
})

test.each(['42501', '0A000'])(
  '%s: rows that cannot be returned are written and reported as unreadable',
  async sqlstate => {
    answers.push(refused(sqlstate), [{ rows: [], count: 1, txid: '7' }])
    expect(await runner.write(ANONYMOUS, [write(), write(OTHER)], { ms: 0 }).result).toEqual([
      { rows: [], count: 1, txid: '7' },
    ])
    expect(asked.map(statements => statements.map(([text]) => text))).toEqual([
      ['reported', 'plain'],
      ['plain', 'plain'],
    ])
    expect(reported).toEqual([['notes', 'unseen']])
  },
)

test('a write that is rejected in both forms reports nothing', async () => {
  answers.push(refused('42501'), refused('42501'))
  await expect(runner.write(ANONYMOUS, [write()], { ms: 0 }).result).rejects.toThrow('no')
  expect([asked.length, reported]).toEqual([2, []])
})

test('other errors are final, also after a disconnect', async () => {
  answers.push(refused('23505'), refused('42501'))
  await expect(runner.write(ANONYMOUS, [write()], { ms: 0 }).result).rejects.toThrow('no')
  const running = runner.write(ANONYMOUS, [write()], { ms: 0 })
  running.cancel()
  await expect(running.result).rejects.toThrow('no')
  expect([asked.length, cancels, reported]).toEqual([2, 1, []])
})

test('a write whose rows are too large to return is not repeated', async () => {
  answers.push(refused('54000', null))
  await expect(runner.write(ANONYMOUS, [write()], { ms: 0 }).result).rejects.toMatchObject({
    hint: expect.stringContaining('write fewer rows at a time'),
  })
  expect([asked.length, reported]).toEqual([1, [['notes', 'unseen']]])
})

test('a write in a common table expression is rejected if its table has listeners', async () => {
  const hiding = (name: string) => {
    const tree = parse(`with gone as (del ${name} where id = 'x' returning id) get gone`) as Get
    return [{ statement: compile(tree, context, { kind: 'writing text', rowsMax: 0 }), values: ['x'] }]
  }
  expect(() => runner.write(ANONYMOUS, hiding('notes'), { ms: 0 })).toThrow(
    '"notes", but changes within "with" cannot be captured',
  )
  answers.push([])
  await runner.write(ANONYMOUS, hiding('others'), { ms: 0 }).result
  expect(asked).toHaveLength(1)
})

test('a write whose changes the capture stores is unchanged, and is reported after the commit', async () => {
  answers.push([{ rows: [], count: 1, txid: '7' }])
  await runner.write(ANONYMOUS, [write(STORED)], { ms: 0 }).result
  expect(asked).toEqual([[['plain', ['new', 'one']]]])
  expect(reported).toEqual([['stored', 'hook']])
  answers.push(refused('23505'))
  await expect(runner.write(ANONYMOUS, [write(STORED)], { ms: 0 }).result).rejects.toThrow('no')
  expect(reported).toEqual([['stored', 'hook']])
})
