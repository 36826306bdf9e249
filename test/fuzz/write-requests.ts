/**
 * Random writes: columns in any order, one row or many, upserts, filters, and returned columns. Usually
 * valid, made from few words.
 */
import fc from 'fast-check'
import { columnOf, filter, group, IDS, mostly, pick, selection, withQuery } from './requests.ts'
import { type Sent, TRICKY_COLUMNS } from './world.ts'

/** Columns to write, and columns that can conflict. */
const WRITTEN: Readonly<Record<string, { readonly columns: readonly string[]; readonly targets: readonly string[] }>> =
  {
    customers: {
      columns: ['id', 'name', 'mail', 'zip', 'tags', 'meta', 'docs', 'vip'],
      targets: ['id', 'mail', 'name,zip', 'zip,name', '"zip", name'],
    },
    order_items: {
      columns: ['order_id', 'line', 'product_id', 'quantity'],
      targets: ['order_id,line', 'line,order_id'],
    },
    codes: { columns: ['part', 'sub', 'title'], targets: ['part,sub', 'title'] },
    journal: { columns: ['at', 'what'], targets: ['at'] },
    tricky: { columns: TRICKY_COLUMNS, targets: ['a', 'as a', 'select,a', 'a,select'] },
  }

const VALUES = ['1', '"x"', 'null', 'true', '[]', '["a",["b"]]', '[{"a":[1]}]', '{"a":1}', '"{a,b}"', '1.50', '"10"']

const PREFER = [
  'return=minimal',
  'return=representation',
  'return="minimal"',
  'count=exact',
  'return=none, count=exact',
]

type Headers = Readonly<Record<string, string>>

/** One header or none. */
function header(name: string, values: readonly string[], rarity: number): fc.Arbitrary<Headers> {
  return mostly(
    rarity,
    fc.constant({}),
    pick(values).map(value => ({ [name]: value })),
  )
}

function row(columns: readonly string[]): fc.Arbitrary<string> {
  const key = mostly(60, pick(columns), pick(['nope', '__proto__', 'a\0b', 'id\0name', '']))
  return fc
    .uniqueArray(fc.tuple(key, pick(VALUES)), { maxLength: 4, selector: ([name]) => name })
    .map(members => `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`)
}

function rows(columns: readonly string[]): fc.Arbitrary<string> {
  return fc.array(row(columns), { maxLength: 4 }).map(list => `[${list.join(',')}]`)
}

export const write: fc.Arbitrary<Sent> = pick(Object.keys(WRITTEN)).chain(table => {
  const { columns = [], targets = [] } = WRITTEN[table] ?? {}
  const one = row(columns)
  const returning = selection(columnOf(table)).map(text => [`returning=${encodeURIComponent(text)}`])
  const answered = mostly(2, fc.constant<string[]>([]), returning)
  const prefer = header('prefer', PREFER, 2)
  const create = fc
    .record({
      body: mostly(3, one, rows(columns)),
      parameters: answered,
      headers: fc.tuple(
        prefer,
        header('x-upsert', ['true', 'true', 'ignore', 'ignore', 'false', 'yes'], 2),
        header('x-on-conflict', [...targets, ...targets, 'nope'], 2),
      ),
    })
    .map(({ body, parameters, headers: [wanted, mode, target] }): Sent => {
      // A target is only valid in upserts. Without one it is an error, and errors are frequent anyway.
      const conflict = 'x-upsert' in mode ? target : {}
      return {
        ...{ method: 'POST', path: withQuery(`/api/${table}`, parameters), body },
        headers: { ...wanted, ...mode, ...conflict },
      }
    })
  const filters = fc.array(fc.oneof({ weight: 4, arbitrary: filter(table) }, group(table)), {
    minLength: 1,
    maxLength: 2,
  })
  const place = fc.oneof(
    pick(IDS.slice(0, 3)).map(id => ({ path: `/api/${table}/${table === 'order_items' ? '1,2' : id}`, filters: [] })),
    filters.map(list => ({ path: `/api/${table}`, filters: list })),
  )
  const change = fc
    .record({
      method: pick(['PATCH', 'DELETE']),
      place,
      body: one,
      parameters: answered,
      headers: fc.tuple(prefer, header('x-max-affected', ['0', '3', '1000', 'x'], 3)),
    })
    .map(({ method, place: { path, filters: list }, body, parameters, headers: [wanted, max] }): Sent => {
      const sent = { method, path: withQuery(path, [...list, ...parameters]), headers: { ...wanted, ...max } }
      return method === 'PATCH' ? { ...sent, body } : sent
    })
  return fc.oneof(create, change)
})
