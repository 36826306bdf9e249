/** A reader over the tables of the shop that runs nothing and remembers what it would have run: all of a request but the database. */
import type { ForeignKey, Table } from '../../src/catalog/model.ts'
import { relate } from '../../src/catalog/relations.ts'
import type { Incoming } from '../../src/http/types.ts'
import { ANONYMOUS } from '../../src/identity/authenticate.ts'
import { createCursorCodec } from '../../src/rest/cursor.ts'
import { parsePath } from '../../src/rest/path.ts'
import { createReader, type ReadRoute } from '../../src/rest/read.ts'
import type { Row, Runner } from '../../src/run/run.ts'
import type { BoundStatement } from '../../src/run/statement.ts'
import { arrayOf, baseType, catalogOf, tableOf } from '../support/model.ts'

const status = { ...baseType('status'), schema: 'public', kind: 'enum' as const, labels: ['draft', 'paid'] }
const int4range = { ...baseType('int4range'), kind: 'range' as const, category: 'R', of: baseType('int4') }

const TABLES: readonly Table[] = [
  keyed('users', { id: 'int4', name: 'text', boss_id: 'int4' }, ['id'], { boss_id: 'users' }),
  keyed(
    'customers',
    {
      ...{ id: 'int4', name: 'text', mail: 'text', zip: 'text', tags: arrayOf(baseType('text')), meta: 'jsonb' },
      ...{ born: 'date', vip: 'bool' },
    },
    ['id'],
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
  keyed('codes', { part: 'text', sub: 'text', title: 'text' }, ['part', 'sub']),
  keyed('journal', { at: 'int4', what: 'text' }, []),
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

const relations = relate(TABLES)
const catalog = catalogOf(...TABLES.map(table => ({ ...table, relations: relations.get(table.name) ?? [] })))
const cursors = createCursorCodec('a key')
const limits = { defaultLimit: 50, maxResultRows: 1_000, maxExpandDepth: 4, maxFilters: 64, maxInValues: 100 }

export interface RecordingReader {
  /** The texts and values that would have been run for a request (path and query), or the error that it got. */
  ask(sent: string): Promise<Recorded>
}

export interface Recorded {
  readonly error: unknown
  readonly ran: readonly { readonly text: string; readonly values: readonly string[] }[]
}

/** A new one was never asked anything. */
export function recordingReader(): RecordingReader {
  const ran: BoundStatement[] = []
  const read = createReader({
    catalog: () => catalog,
    runner: recorder(ran),
    limits,
    cursors,
    searchLanguage: 'english',
  })
  return {
    async ask(sent) {
      const mark = sent.indexOf('?')
      const path = mark < 0 ? sent : sent.slice(0, mark)
      const query = mark < 0 ? '' : sent.slice(mark + 1)
      const incoming: Incoming = { method: 'GET', path, query, headers: {}, body: Buffer.alloc(0), requestId: 'r', onAbort() {} }
      ran.length = 0
      let error: unknown = null
      try {
        await read(incoming, parsePath(path) as ReadRoute, ANONYMOUS)
      } catch (reason) {
        error = reason
      }
      return { error, ran: ran.map(({ statement, values }) => ({ text: statement.text, values: values.map(String) })) }
    },
  }
}

/** Finds nothing. */
function recorder(ran: BoundStatement[]): Pick<Runner, 'read' | 'stream'> {
  const nothing: readonly Row[] = []
  return {
    read(_identity, statements) {
      ran.push(...statements)
      return { result: Promise.resolve(statements.map(() => nothing)), cancel() {} }
    },
    async *stream(_identity, statement) {
      ran.push(statement)
      yield nothing
    },
  }
}
