/** Random aggregates and plans (`aggregate`, `_explain`), like the lists in requests.ts. */
import fc from 'fast-check'
import { columnOf, filter, group, mostly, pick, request, sorting, withQuery } from './requests.ts'

const FUNCTIONS = ['count', 'count', 'sum', 'avg', 'min', 'max']

const USUAL: Readonly<Record<string, readonly string[]>> = {
  orders: ['status', 'total'],
  customers: ['name', 'zip'],
  tricky: ['a', 'as a'],
}

const aggregate: fc.Arbitrary<string> = pick(Object.keys(USUAL)).chain(table => {
  // Usually few of them, so that shapes repeat.
  const column = mostly(3, pick(USUAL[table] ?? []), columnOf(table))
  const parameter = fc.oneof(
    pick(['limit=0', 'limit=1', 'limit=50', 'limit=101', 'limit=1000', 'limit=9999', 'offset=0', 'offset=5']),
    pick(['search=x', 'search=x&search_columns=name', 'search=x&search_columns=a']),
    sorting(mostly(2, column, pick(FUNCTIONS))).map(text => `sort=${encodeURIComponent(text)}`),
    fc.oneof(filter(table), group(table)),
  )
  const groups = fc.uniqueArray(column, { minLength: 1, maxLength: 2 }).map(list => {
    // Sorted by their groups; otherwise half of them would be rejected.
    return `group_by=${encodeURIComponent(list.join(','))}&sort=${encodeURIComponent(list.at(-1) ?? '')}`
  })
  return fc
    .tuple(
      pick(FUNCTIONS).map(fn => `fn=${fn}`),
      fc.option(column.map(name => `column=${encodeURIComponent(name.replaceAll('"', ''))}`)),
      fc.option(
        fc.oneof(
          groups,
          column.map(name => `group_by=${encodeURIComponent(name)}`),
        ),
      ),
      fc.uniqueArray(parameter, { maxLength: 2, selector: text => text.slice(0, text.indexOf('=')) }),
    )
    .map(([fn, of, by, others]) =>
      withQuery(`/api/${table}/aggregate`, [fn, ...[of, by].filter(part => part !== null), ...others]),
    )
})

const explain: fc.Arbitrary<string> = request.map(sent => sent.replace(/^(\/api\/[^/?]+)(?=\?|$)/, '$1/_explain'))

export const summary: fc.Arbitrary<string> = fc.oneof({ weight: 3, arbitrary: aggregate }, explain)
