/**
 * The basis of the fuzz tests: a hand-written catalog, and a runner that records statements instead of
 * executing them.
 */

import type { Catalog, Column, DatabaseFunction, ForeignKey, Table } from '../../src/catalog/model.ts'
import { relate } from '../../src/catalog/relations.ts'
import type { BoundStatement } from '../../src/compile/statement.ts'
import { GatewayError } from '../../src/errors.ts'
import type { Answer, Incoming } from '../../src/exchange.ts'
import type { ResultRow, Runner } from '../../src/run/run.ts'
import { Usage } from '../../src/usage.ts'
import { catalogWith, columnOf, functionOf } from '../support/functions.ts'
import { arrayOf, baseType, catalogOf, tableOf } from '../support/model.ts'

const status = { ...baseType('status'), schema: 'public', kind: 'enum' as const, labels: ['draft', 'paid'] }
const int4range = { ...baseType('int4range'), kind: 'range' as const, category: 'R', of: baseType('int4') }

/** Names that look like the words of a plan key. */
export const TRICKY_COLUMNS: readonly string[] = [
  ...['select', 'returning *', 'returning nothing', 'set 1', 'as a', 'a', '*', 'groups 1', 'search all', 'of a'],
  ...['one  ', 'offset', 'limit', 'limit 1', 'asc ', '->', 'x y', '1'],
]

const TABLES: readonly Table[] = [
  keyed('users', { id: 'int4', name: 'text', boss_id: 'int4' }, ['id'], { boss_id: 'users' }),
  unique(
    keyed(
      'customers',
      {
        ...{ id: 'int4', name: 'text', mail: 'text', zip: 'text', tags: arrayOf(baseType('text')), meta: 'jsonb' },
        ...{ born: 'date', vip: 'bool', docs: arrayOf(baseType('jsonb')) },
      },
      ['id'],
    ),
    [['mail'], ['name', 'zip']],
  ),
  keyed(
    'orders',
    {
      ...{ id: 'int8', customer_id: 'int4', created_by: 'int4', approved_by: 'int4', status, total: 'numeric' },
      ...{ placed_at: 'timestamptz', note: 'text', open: int4range },
    },
    ['id'],
    { customer_id: 'customers', created_by: 'users', approved_by: 'users' },
  ),
  keyed('products', { id: 'int4', name: 'text', description: 'text', words: 'tsvector' }, ['id']),
  keyed('order_items', { order_id: 'int8', line: 'int4', product_id: 'int4', quantity: 'int4' }, ['order_id', 'line'], {
    order_id: 'orders',
    product_id: 'products',
  }),
  keyed('labels', { id: 'int4', name: 'text' }, ['id']),
  keyed('product_labels', { product_id: 'int4', label_id: 'int4' }, ['product_id', 'label_id'], {
    product_id: 'products',
    label_id: 'labels',
  }),
  unique(keyed('codes', { part: 'text', sub: 'text', title: 'text' }, ['part', 'sub']), [['title']]),
  keyed('journal', { at: 'int4', what: 'text' }, []),
  unique(keyed('tricky', Object.fromEntries(TRICKY_COLUMNS.map(name => [name, 'text'])), ['a']), [
    ['as a'],
    ['select', 'a'],
  ]),
]

function keyed(
  name: string,
  columns: Parameters<typeof tableOf>[1],
  primaryKey: readonly string[],
  references: Readonly<Record<string, string>> = {},
): Table {
  const foreignKeys = Object.entries(references).map(
    ([column, table]): ForeignKey => ({
      name: `${name}_${column}_fkey`,
      columns: [column],
      table,
      referencedColumns: ['id'],
    }),
  )
  return { ...tableOf(name, columns, { primaryKey }), foreignKeys }
}

function unique(table: Table, keys: readonly (readonly string[])[]): Table {
  return { ...table, unique: keys }
}

const columns: readonly Column[] = [
  ...[columnOf('id', 'int4'), columnOf('word', 'text'), columnOf('size', 'int4'), columnOf('doc', 'jsonb')],
  ...[columnOf('limit 1', 'text'), columnOf('as word', 'text'), columnOf('offset', 'text')],
]
const rows = { returnsSet: true, result: { kind: 'composite', columns, table: null, named: false } } as const
const row = { result: rows.result } as const
const stable = { volatility: 'stable' } as const
const setOf = (type: string) => ({ returnsSet: true, result: { kind: 'scalar', column: columnOf('n', type) } }) as const

const FUNCTIONS: readonly DatabaseFunction[] = [
  functionOf('none()', stable),
  functionOf('nothing(x int4 default 1)', { result: { kind: 'void' } }),
  functionOf('nothings(x int4 default 1)', { ...stable, returnsSet: true, result: { kind: 'void' } }),
  functionOf('middle(a int4 default 1, b int4 default 2, c int4 default 3)', stable),
  functionOf('writes(a int4 default 1, b int4 default 2)'),
  functionOf('over(a int4)', stable),
  functionOf('over(a text)', stable),
  functionOf('over(a numeric)', stable),
  functionOf('over(a int4[])', stable),
  functionOf('over(a int4, b int4)', stable),
  functionOf('over(a int4, c text)', { ...stable, ...row }),
  functionOf('mixed(a int4)', stable),
  functionOf('mixed(a int4, b int4)'),
  functionOf('unnamed(int4, int4 default 7)', stable),
  functionOf('half_named(int4, b int4 default 2)', stable),
  functionOf('tagged(a text, variadic b int4[] default 1)', stable),
  functionOf('docs(variadic b jsonb[])', stable),
  functionOf('like_a(a anyelement, b anyelement default 1)', stable),
  functionOf('first_of(a anyarray)', stable),
  functionOf('common(a anycompatible, b anycompatible)', stable),
  functionOf('each_of(a anyarray)', { ...stable, ...setOf('anyelement') }),
  functionOf('spread(variadic a anyarray)', stable),
  functionOf('one_row(a int4 default 1, b int4[] default 1)', { ...stable, ...row }),
  functionOf('words(a int4 default 1, b text default 1)', { ...stable, ...rows }),
  functionOf('words(a int4, b text, c int4)', { ...stable, ...rows }),
  functionOf('words(a int4 default 1, b text default 1)', { schema: 'sales', ...stable, ...rows }),
  functionOf('changed(a int4 default 1, b text default 1)', rows),
  functionOf('numbers(a int4 default 1, b int8[] default 1)', { ...stable, ...setOf('int4') }),
]

const relations = relate(TABLES)
export const catalog: Catalog = {
  ...catalogOf(...TABLES.map(table => ({ ...table, relations: relations.get(table.name) ?? [] }))),
  functions: catalogWith(...FUNCTIONS).functions,
}

/** Path and query string as sent, and the other parts of a request. */
export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Recorded {
  /** The statements run, with their parameter values and mode. */
  readonly ran: readonly { readonly text: string; readonly values: readonly string[]; readonly how: string }[]
  /** The response, or the error's code and message. */
  readonly outcome: string
  readonly error: GatewayError | null
}

/** Answers a request with rows that any statement might have returned. */
export type Asked = (sent: Sent | string) => Promise<Recorded>

export type Finds = 'rows' | 'nothing'

/** Records the statements that `answer` would run, with an empty plan cache. */
export function recording(
  answer: (runner: Runner) => (incoming: Incoming, path: string) => Promise<Answer>,
  finds: Finds = 'rows',
): Asked {
  const ran: Recorded['ran'][number][] = []
  const ask = answer(recorder(ran, finds))
  return async sent => {
    const incoming = incomingOf(typeof sent === 'string' ? { method: 'GET', path: sent } : sent)
    ran.length = 0
    try {
      const outcome = await printAnswer(await ask(incoming, incoming.path))
      return { ran: [...ran], outcome, error: null }
    } catch (error) {
      // An internal error is never a valid response.
      if (!(error instanceof GatewayError)) throw error
      return { ran: [...ran], outcome: `${error.code}: ${error.message}`, error }
    }
  }
}

export function incomingOf({ method, path, headers = {}, body = '' }: Sent): Incoming {
  const mark = path.indexOf('?')
  const plain = mark < 0 ? path : path.slice(0, mark)
  const query = mark < 0 ? '' : path.slice(mark + 1)
  const type = body === '' ? {} : { 'content-type': 'application/json' }
  return {
    ...{ method, path: plain, query, headers: { ...type, ...headers }, body: Buffer.from(body) },
    ...{ requestId: 'r', connection: {}, trace: null, usage: new Usage(), isLarge: false, onAbort() {} },
  }
}

async function printAnswer({ status, headers, body }: Answer): Promise<string> {
  const chunks: Buffer[] = []
  if (Buffer.isBuffer(body)) chunks.push(body)
  else if (body !== null && 'latin1' in body) chunks.push(Buffer.from(body.latin1, 'latin1'))
  else for await (const chunk of body ?? []) chunks.push(chunk)
  return JSON.stringify([status, headers, Buffer.concat(chunks).toString()])
}

const ROW: ResultRow = ['{"count":7}', 't', 'k1', 'k2'].map(text => Buffer.from(text))

/** More rows than a page, if the result is paged. */
function rowsOf({ statement: { text } }: BoundStatement): readonly ResultRow[] {
  if (text.includes(' HAVING ')) return []
  return Array.from({ length: text.includes(' LIMIT ') ? 60 : 1 }, () => ROW)
}

function recorder(ran: Recorded['ran'][number][], finds: Finds): Runner {
  const record = (how: string, statements: readonly BoundStatement[]) => {
    for (const { statement, values } of statements) ran.push({ text: statement.text, values: values.map(String), how })
  }
  const running = <T>(result: T) => ({ result: Promise.resolve(result), cancel() {} })
  return {
    read(_identity, statements) {
      record('read', statements)
      return running(statements.map(statement => (finds === 'rows' ? rowsOf(statement) : [])))
    },
    write(_identity, statements) {
      record('write', statements)
      return running(statements.map(() => ({ rows: [ROW], count: 1, txid: '7' })))
    },
    call(_identity, statement, { access, format }) {
      record(`call ${access} ${format}`, [statement])
      return running({ rows: [ROW, ROW], fields: ['a', 'b'].map(name => ({ name, typeOid: 25 })) })
    },
    parse: () => running(undefined),
    open: () => {
      throw new Error('a single request opens no transaction')
    },
    async *stream(_identity, statement) {
      record('stream', [statement])
      yield [ROW, ROW]
    },
  }
}
