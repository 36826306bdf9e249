import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arrayOf, baseType, domainOver, tableOf } from '../../../test/support/model.ts'
import type { DataType } from '../../catalog/model.ts'
import { JSON_DEPTH_MAX } from '../../json/json-body.ts'
import { Rewriting } from './rewriting.ts'
import { type ArrayForm, JSON_ARRAY, type TextForms, textFormOf } from './text-forms.ts'
import { isPending, withTextColumns } from './text-values.ts'

/** Finished, however often it is left in between. */
function finished(rewriting: Rewriting, bytesInATurn = Number.POSITIVE_INFINITY): Buffer {
  while (!rewriting.run(bytesInATurn)) {}
  return rewriting.bytes()
}

function withTextMembers(bytes: Buffer, forms: TextForms, bytesInATurn?: number): Buffer {
  return finished(Rewriting.members(bytes, forms), bytesInATurn)
}

const json = baseType('json')
const jsonb = baseType('jsonb')
const int = baseType('int4')
const composite: DataType = { ...baseType('pair'), kind: 'composite', category: 'C' }
const ints = domainOver('ints', arrayOf(int))
const docs = domainOver('docs', arrayOf(jsonb))
const pairs = domainOver('pairs', arrayOf(composite))

/** The text form of a JSON array for a column of this type. */
function printed(type: DataType, array: string): string | null {
  const form = textFormOf(type) as ArrayForm | null
  if (form === null) throw new Error(`${type.name} is read from JSON`)
  const none = new Error('no text form')
  try {
    return finished(Rewriting.text(Buffer.from(array), form, () => none)).toString()
  } catch (error) {
    if (error === none) return null
    throw error
  }
}

test('an hstore object becomes its text form, escaped at every level', () => {
  const hstore = baseType('hstore')
  const table = tableOf('t', { h: hstore, hs: arrayOf(hstore), id: int })
  const rewritten = (row: string) => withTextColumns(Buffer.from(row), table, ['h', 'hs', 'id'], undefined).toString()
  const written = JSON.parse(
    rewritten(
      '[{"id": 1, "h": {"a": "1", "b\\"\\\\": null, "c": 2, "d": {"e": []}, "\\n":true}}, {"h": "x=>1", "id":2}]',
    ),
  )
  expect(written).toEqual([
    { id: 1, h: `${String.raw`"a"=>"1","b\"\\"=>NULL,"c"=>"2","d"=>"{\"e\": []}","`}\n"=>"true"` },
    { id: 2, h: 'x=>1' },
  ])
  expect(JSON.parse(rewritten('{"hs": [{"a": "x\\"y"}, null, {}], "h": {}}'))).toEqual({
    hs: String.raw`{"\"a\"=>\"x\\\"y\"",null,""}`,
    h: '',
  })
  expect(finished(Rewriting.text(Buffer.from('{"a" : "b"}'), 'hstore')).toString()).toBe('"a"=>"b"')
})

describe('a column type', () => {
  test.each<[string, DataType]>([
    ['jsonb[]', arrayOf(jsonb)],
    ['json[]', arrayOf(json)],
    ['a domain over jsonb[]', docs],
    ['a domain over that', domainOver('more', docs)],
    ['an array of a domain over jsonb', arrayOf(domainOver('document', jsonb))],
    ['an array of a domain over an array', arrayOf(ints)],
    ['an array of a domain over such a domain', arrayOf(domainOver('small', ints))],
  ])('%s has a text form', (_, type) => {
    expect(textFormOf(type)).not.toBeNull()
  })
  test.each<[string, DataType]>([
    ['jsonb', jsonb],
    ['int4[]', arrayOf(int)],
    ['a domain over int4[]', ints],
    ['an array of a domain', arrayOf(domainOver('positive', int))],
    ['an array of composites', arrayOf(composite)],
  ])('%s is read from JSON by PostgreSQL', (_, type) => {
    expect(textFormOf(type)).toBeNull()
  })
})

describe('elements of json', () => {
  test.each([
    ['[]', '{}'],
    [' [ 1 , [ ] ] ', '{1,"[ ]"}'],
    ['[1.50,-0,1e400,12345678901234567890.10]', '{1.50,-0,1e400,12345678901234567890.10}'],
    ['[null,"null",[null],true]', String.raw`{null,"\"null\"","[null]",true}`],
    ['["",",","{}","é😀"]', String.raw`{"\"\"","\",\"","\"{}\"","\"é😀\""}`],
    [String.raw`["\"\\\n\u00e9\/"]`, String.raw`{"\"\\\"\\\\\\n\\u00e9\\/\""}`],
    ['[[[1],2],{ "a" : [1] }]', String.raw`{"[[1],2]","{ \"a\" : [1] }"}`],
  ])('%s', (array, expected) => {
    expect(printed(arrayOf(jsonb), array)).toBe(expected)
    expect(printed(domainOver('docs', arrayOf(domainOver('document', json))), array)).toBe(expected)
  })
})

describe('elements that are arrays', () => {
  test.each<[DataType, string, string | null]>([
    [arrayOf(ints), '[[1,2],null,[3],[]]', '{"{1,2}",null,"{3}","{}"}'],
    [arrayOf(ints), '[[[1,null],[3,4]]]', '{"{{1,null},{3,4}}"}'],
    [arrayOf(ints), '["{1,2}",[3]]', '{"{1,2}","{3}"}'],
    // PostgreSQL rejects these with its own message.
    [arrayOf(ints), '[1,true,[{"a":1}]]', String.raw`{1,true,"{\"{\\\"a\\\":1}\"}"}`],
    [
      arrayOf(domainOver('texts', arrayOf(baseType('text')))),
      String.raw`[["NULL","a\"\\\u00e9,"]]`,
      String.raw`{"{\"NULL\",\"a\\\"\\\\é,\"}"}`,
    ],
    [arrayOf(docs), '[[[1],2],[null]]', String.raw`{"{\"[1]\",2}","{null}"}`],
    [arrayOf(domainOver('lists', arrayOf(ints))), '[[[1],[2,3]]]', String.raw`{"{\"{1}\",\"{2,3}\"}"}`],
    [arrayOf(pairs), '[["(1,a)",null]]', String.raw`{"{\"(1,a)\",null}"}`],
    [arrayOf(pairs), '[["(1,a)"],[{"a":1}]]', null],
    [arrayOf(ints), '[[[[[[[1]]]]]]]', '{"{{{{{{1}}}}}}"}'],
    [arrayOf(ints), '[[[[[[[[1]]]]]]]]', null],
  ])('%#: %j', (type, array, expected) => {
    expect(printed(type, array)).toBe(expected)
  })
})

const FORMS = new Map([
  ['many', JSON_ARRAY],
  ['é"', JSON_ARRAY],
])
const rewritten = (body: string, bytesInATurn?: number) =>
  withTextMembers(Buffer.from(body), FORMS, bytesInATurn).toString()

describe('a body', () => {
  test.each([
    ['{"id": 1.0, "many" : [[1]], "x":[[2]] }', String.raw`{"id": 1.0, "many" : "{\"[1]\"}", "x":[[2]] }`],
    [String.raw`{"\u00e9\"":[1]}`, String.raw`{"\u00e9\"":"{1}"}`],
    [
      '[ {"many":[1]}, {"id":2}, {"id":3,"many":[[]]} ]',
      String.raw`[ {"many":"{1}"}, {"id":2}, {"id":3,"many":"{\"[]\"}"} ]`,
    ],
    ['{"many":[\n[\t1 ] ]}', String.raw`{"many":"{\"[\u00091 ]\"}"}`],
    [String.raw`{"many":["\t\"\u0001"]}`, String.raw`{"many":"{\"\\\"\\\\t\\\\\\\"\\\\u0001\\\"\"}"}`],
  ])('%s', (body, expected) => {
    expect(rewritten(body)).toBe(expected)
    expect(() => JSON.parse(expected)).not.toThrow()
  })
  test.each(['{"many":"{}"}', '{"many":null}', '{"many":1}', '{"many":{"a":[1]}}', '{"x":{"many":[1]}}', '{}', '[]'])(
    'is unchanged if there is nothing to convert: %s',
    body => {
      const bytes = Buffer.from(body)
      expect(withTextMembers(bytes, FORMS)).toBe(bytes)
    },
  )
  test('can be as deep as a body is allowed to be', () => {
    const deep = '['.repeat(JSON_DEPTH_MAX - 2) + ']'.repeat(JSON_DEPTH_MAX - 2)
    expect(rewritten(`{"many":[${deep}]}`)).toBe(String.raw`{"many":"{\"${deep}\"}"}`)
  })
  test('is not scanned without such a column in the request', () => {
    const table = tableOf('t', { id: int, many: arrayOf(jsonb), a: arrayOf(int) })
    const bytes = Buffer.from('no JSON')
    expect(withTextColumns(bytes, table, ['id', 'a', 'unknown'], undefined)).toBe(bytes)
    expect(withTextColumns(Buffer.from('{"many":[[1]]}'), table, ['many'], undefined).toString()).toBe(
      String.raw`{"many":"{\"[1]\"}"}`,
    )
  })
})

/** The elements of `{"…",1,null}`. */
function elementsOf(literal: string): readonly (string | null)[] {
  return [...literal.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/gs)].map(([, quoted, word = null]) =>
    quoted === undefined ? (word === 'null' ? null : word) : quoted.replace(/\\(.)/gs, '$1'),
  )
}

test('every element and everything around it keeps its bytes', () => {
  const value = fc.jsonValue({ maxDepth: 4, stringUnit: 'grapheme' })
  fc.assert(
    fc.property(
      fc.array(fc.record({ id: value, many: fc.array(value) })),
      fc.constantFrom(0, 1, '\t'),
      (rows, indent) => {
        const body = JSON.stringify(rows, null, indent)
        fc.pre(!body.includes('\\u0000'))
        expect(rewritten(body, 1)).toBe(rewritten(body))
        const sent = JSON.parse(rewritten(body)) as readonly { readonly id: unknown; readonly many: string }[]
        expect(sent.map(({ id }) => id)).toEqual(JSON.parse(body).map(({ id }: { id: unknown }) => id))
        for (const [index, { many }] of sent.entries()) {
          const elements = elementsOf(many)
          expect(elements.map(text => (text === null ? null : JSON.parse(text)))).toEqual(
            JSON.parse(JSON.stringify(rows[index]?.many)),
          )
          for (const text of elements) expect(text === null || body.includes(text)).toBe(true)
        }
      },
    ),
  )
})

test('escapes in strings of an hstore are decoded', () => {
  const units = ['a', '"', '\\', '\n', '\b', '\u0001', '/', 'é', '€', '😀', '\x7f']
  const inHex = (text: string) =>
    text.replace(/[\s\S]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const print = (text: string) =>
    [...text].map((found, at) => (at % 2 === 0 ? inHex(found) : JSON.stringify(found).slice(1, -1))).join('')
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...units) }), text => {
      const body = `{"h":{"k":"${print(text)}"}}`
      expect(JSON.parse(body)).toEqual({ h: { k: text } })
      const { h } = JSON.parse(withTextMembers(Buffer.from(body), new Map([['h', 'hstore']])).toString())
      expect(h).toBe(`"k"=>"${text.replace(/["\\]/g, '\\$&')}"`)
    }),
  )
})

test('a large hostile body is converted in linear time', () => {
  const started = performance.now()
  const deep = '['.repeat(60) + ']'.repeat(60)
  const body = Buffer.from(`{"many":[${`${deep},`.repeat(2_000)}"${'\\\\\\"'.repeat(100_000)}"]}`)
  const forms = new Map([['many', { of: { of: { of: 'plain' } } } as const]])
  withTextMembers(body, forms)
  withTextMembers(body, FORMS)
  expect(performance.now() - started).toBeLessThan(3_000)
})

describe('composite values', () => {
  const hstore = baseType('hstore')
  const label = composed('label', { at: int, pairs: hstore, docs: arrayOf(jsonb), note: baseType('text') })
  const box = composed('box', { label: domainOver('labelled', label), labels: arrayOf(label) })
  const plain = composed('plain', { a: int, b: arrayOf(int), c: jsonb })
  const rows = (type: DataType, value: string, bytesInATurn?: number) => {
    const body = Buffer.from(`{"v":${value}}`)
    const form = textFormOf(type)
    const { v } = JSON.parse(
      withTextMembers(body, new Map(form === null ? [] : [['v', form]]), bytesInATurn).toString(),
    )
    return v
  }

  test.each([
    [
      'members of every kind',
      label,
      '{"at":1,"pairs":{"a":"1"},"docs":[[1]],"note":"x"}',
      { at: 1, pairs: '"a"=>"1"', docs: '{"[1]"}', note: 'x' },
    ],
    ['a text form', label, '{"pairs":"a=>1","docs":"{}"}', { pairs: 'a=>1', docs: '{}' }],
    [
      'in one another',
      box,
      '{"label":{"pairs":{}},"labels":[{"pairs":{"é":null}},null]}',
      { label: { pairs: '' }, labels: [{ pairs: '"é"=>NULL' }, null] },
    ],
    ['with two dimensions', arrayOf(label), '[[{"pairs":{}}],[{"at":2}]]', [[{ pairs: '' }], [{ at: 2 }]]],
    ['that PostgreSQL reads', plain, '{"a":1,"b":[1],"c":{"pairs":{}}}', { a: 1, b: [1], c: { pairs: {} } }],
  ])('%s stay objects', (_, type, value, expected) => {
    expect(rows(type, value)).toEqual(expected)
    expect(rows(type, value, 1)).toEqual(expected)
  })

  test.each([
    [
      'by their place',
      plain,
      '[[{"c":{"x":[null]},"a":1,"b":[1,null],"z":0}],null,[]]',
      String.raw`{"{\"(1,\\\"{1,null}\\\",\\\"{\\\\\\\"x\\\\\\\":[null]}\\\")\"}",null,"{}"}`,
    ],
    ['texts and NULL', label, '[[{"note":"","at":null}]]', String.raw`{"{\"(,,,\\\"\\\")\"}"}`],
    [
      'in one another',
      composed('outer', { inner: plain }),
      '[[{"inner":{"a":1}}]]',
      String.raw`{"{\"(\\\"(1,,)\\\")\"}"}`,
    ],
  ])('in an array of arrays they are texts: %s', (_, type, value, expected) => {
    const list = arrayOf(domainOver('many', arrayOf(type)))
    expect(printed(list, value)).toBe(expected)
    expect(rows(list, value, 1)).toBe(expected)
  })

  test('a large body is left and resumed', () => {
    const table = tableOf('t', { labels: arrayOf(label) })
    const body = Buffer.from(`{"labels":[${Array(20_000).fill('{"pairs":{"a":"1"}}').join(',')}]}`)
    const begun = withTextColumns(body, table, ['labels'], undefined)
    if (!isPending(begun)) throw new Error('it is finished')
    const { labels } = JSON.parse(finished(begun, 1000).toString())
    expect(labels).toEqual(Array(20_000).fill({ pairs: '"a"=>"1"' }))
  })

  test('a value whose escapes grow beyond the limit is refused', () => {
    let type = baseType('text')
    for (let n = 0; n < 30; n += 1) type = domainOver(`d${n}`, arrayOf(type))
    expect(() => rows(type, `${'['.repeat(30)}"a"${']'.repeat(30)}`)).toThrow('more than 67108864 bytes')
  })

  test('a row type of 1 600 columns does not multiply empty objects without end', () => {
    const wide = composed('wide', Object.fromEntries(Array.from({ length: 1600 }, (_, n) => [`c${n}`, int])))
    const list = arrayOf(domainOver('many', arrayOf(wide)))
    expect(() => rows(list, `[[${Array(50_000).fill('{}').join(',')}]]`)).toThrow('more than 67108864 bytes')
  })
})

function composed(name: string, attributes: Readonly<Record<string, DataType>>): DataType {
  const list = Object.entries(attributes).map(([attribute, type]) => ({ name: attribute, type }))
  return { ...baseType(name), kind: 'composite', category: 'C', attributes: list }
}
