/**
 * Random calls of the functions of world.ts: by query string, by bodies of any form, with the parameters for
 * sets.
 */
import fc from 'fast-check'
import { joined, mostly, pick, sorting, withQuery } from './requests.ts'
import { catalog, type Sent } from './world.ts'

const VALUES = [
  ...['1', '2', '-7', '4000000000', '12345678901234567890', '1.5', '1e3', '"x"', '"1"', '""', 'true', 'null'],
  ...['[]', '[1]', '[1,2]', '["x"]', '[null]', '[[1],[2]]', '[[["x"]]]', '[1.5]', '[{}]', '{}', '{"a":[1]}', '[1,"x"]'],
]

const TEXTS = ['1', '2', 'x', '', '{1}', '[1,2]', '(1,2)', 'in.x', '1.5']

const RESULT_COLUMNS = [
  'id',
  'word',
  'size',
  'doc',
  'doc->a',
  'doc->>a',
  'doc->0',
  '"limit 1"',
  '"as word"',
  'offset',
  'n',
]

const result: fc.Arbitrary<readonly string[]> = fc.uniqueArray(
  fc.oneof(
    joined(mostly(4, pick(RESULT_COLUMNS), pick(['*', 'word:id', 'a:word', 'nope'])), 3).map(text => `select=${text}`),
    sorting(pick(RESULT_COLUMNS)).map(text => `sort=${text}`),
    pick([
      'sort=',
      'limit=0',
      'limit=1',
      'limit=7',
      'limit=101',
      'limit=102',
      'limit=1000',
      'limit=2000',
      'offset=0',
      'offset=5',
    ]),
    fc
      .tuple(
        pick(RESULT_COLUMNS),
        pick(['eq.1', 'gt.1', 'in.(1,2)', 'is_null', 'not.eq.1', 'is_null.false', 'like.x*']),
      )
      .map(([column, condition]) => `${encodeURIComponent(column)}=${encodeURIComponent(condition)}`),
    pick(['or=(id.eq.1,word.eq.x)', 'and=(id.eq.1,word.eq.x)', 'not.or=(id.eq.1,word.eq.x)']),
  ),
  { maxLength: 2, selector: text => text.slice(0, text.indexOf('=')) },
)

/** Arguments of one function with this name, and now and then of another. */
function argumentNames(name: string): fc.Arbitrary<string> {
  const known = catalog.functions.get(name)?.flatMap(({ inputs }) => inputs.flatMap(input => input.name ?? [])) ?? []
  return mostly(20, pick(known.length > 0 ? known : ['a']), pick(['a', 'c', 'x']))
}

function byQuery(name: string): fc.Arbitrary<readonly string[]> {
  return fc
    .array(fc.tuple(argumentNames(name), pick(TEXTS)), { maxLength: 3 })
    .map(list => list.map(([argument, text]) => `${argument}=${encodeURIComponent(text)}`))
}

function body(name: string): fc.Arbitrary<string> {
  const members = fc.uniqueArray(fc.tuple(argumentNames(name), pick(VALUES)), {
    maxLength: 3,
    selector: ([argument]) => argument,
  })
  return fc.oneof(
    {
      weight: 3,
      arbitrary: members.map(list => `{${list.map(([argument, value]) => `"${argument}":${value}`).join(',')}}`),
    },
    { weight: 2, arbitrary: fc.array(pick(VALUES), { maxLength: 2 }).map(list => `[${list.join(',')}]`) },
    pick(VALUES),
    fc.constant(''),
  )
}

export const call: fc.Arbitrary<Sent> = pick([...catalog.functions.keys()]).chain(name => {
  const isSet = catalog.functions.get(name)?.some(({ returnsSet }) => returnsSet) ?? false
  const others = mostly(isSet ? 8 : 2, isSet ? result : fc.constant([]), fc.constant([]))
  const headers = pick([{}, {}, { 'x-svc-result-format': 'binary' }, { 'x-svc-result-format': 'text' }])
  const path = `/api/rpc/${name}`
  return fc.oneof(
    fc
      .tuple(byQuery(name), others, headers)
      .map(([args, list, head]): Sent => ({ method: 'GET', path: withQuery(path, [...args, ...list]), headers: head })),
    fc
      .tuple(body(name), others, headers)
      .map(([text, list, head]): Sent => ({ method: 'POST', path: withQuery(path, list), headers: head, body: text })),
  )
})
