import { expect, test } from 'vitest'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import { type CheckContext, checkRead, checkWrite } from '../access/check.ts'
import { EVERYTHING } from '../access/rights.ts'
import { parse } from '../language/syntax/parse.ts'
import { STATEMENT_LIMITS } from '../statement-limits.ts'
import { tableDependenciesOf } from './table-dependencies.ts'

const context: CheckContext = {
  catalog: catalogOf(
    tableOf('orders', { id: 'int8', note: 'text', placed: 'timestamptz' }, { primaryKey: ['id'] }),
    tableOf('items', { id: 'int8', order_id: 'int8' }),
    tableOf('facts', { id: 'int8' }, { schema: 'sales' }),
  ),
  rights: EVERYTHING,
  searchLanguage: 'english',
  limits: STATEMENT_LIMITS,
}

/** The tables as `read: …; insert t`, each once. */
function touched(text: string) {
  const tree = parse(text)
  const query =
    tree.kind === 'get'
      ? checkRead(tree, context).query
      : tree.kind === 'add' || tree.kind === 'set' || tree.kind === 'del'
        ? checkWrite(tree, context).query
        : null
  if (query === null) throw new Error(`${text} is neither read nor write`)
  const { reads, writes, deterministic } = tableDependenciesOf(query)
  const names = reads.map(({ schema, name }) => `${schema}.${name}`)
  return {
    reads: [...new Set(names)].sort(),
    writes: [...new Set(writes.map(({ table, operation }) => `${operation} ${table.schema}.${table.name}`))].sort(),
    deterministic,
  }
}

const ORDERS = 'public.orders'
const ITEMS = 'public.items'

test('the count of collected values does not make a statement depend on chance', () => {
  expect(touched("get orders fields string_agg(note, ',') as v")).toMatchObject({ deterministic: true })
  expect(touched('get orders fields array_agg(random()) as v')).toMatchObject({ deterministic: false })
})

test.each([
  ['get orders', [ORDERS]],
  ['get orders join items on items.order_id = orders.id', [ITEMS, ORDERS]],
  ['get orders where id in (get items fields order_id)', [ITEMS, ORDERS]],
  ['get orders where exists (get items where items.order_id = orders.id)', [ITEMS, ORDERS]],
  ['with f as (get sales.facts) get f', ['sales.facts']],
  ['get orders fields id union get items fields id', [ITEMS, ORDERS]],
])('the tables that a statement reads are listed: %s', (text, reads) => {
  expect(touched(text)).toEqual({ reads, writes: [], deterministic: true })
})

test.each([
  ["add orders fields id, note values 1, 'a'", ['insert public.orders']],
  [
    "add orders fields id, note values 1, 'a' conflict (id) update note = excluded.note",
    ['insert public.orders', 'update public.orders'],
  ],
  ["set orders values note = 'x' where id = 1", ['update public.orders']],
  ['del orders where id = 1', ['delete public.orders']],
  ['with gone as (del items where id = 1 returning id) get gone', ['delete public.items']],
])('the tables that a statement writes are listed: %s', (text, writes) => {
  expect(touched(text)).toMatchObject({ writes })
})

test.each([
  ['get orders where placed < now()', false],
  ['get orders where placed < NOW()', false],
  ['get orders fields id, random()', false],
  ['get orders order by random()', false],
  ['get orders where placed < current_timestamp()', false],
  ['get orders fields age(placed)', false],
  ['get orders where id in (get items fields order_id where random() < 0.5)', false],
  ['get orders fields gen_random_uuid() as u', false],
  ["get orders fields lower(note), date_trunc('day', placed), count(*) over () as n", true],
  ['get orders fields max(id)', true],
])('%s: steady is %s', (text, deterministic) => {
  expect(touched(text).deterministic).toBe(deterministic)
})
