/** docs/guides/agents.md#tools: `parameterized`, and what each entry of `parameters` describes. */
import { describe, expect, test } from 'vitest'
import { parse } from '../syntax/parse.ts'
import { answerExplain, answerFormat, answerParse, answerTranspile } from './answer.ts'

const QUERY = parse("get users where name = 'x' and id = :id and age > $7 and manager_id = :id limit 3")

describe('parameters', () => {
  test('with literals lifted: in the order of first use, each of the author once', () => {
    expect(answerTranspile(QUERY, 'all')).toEqual({
      ok: true,
      sql: 'SELECT * FROM users WHERE name = $1 AND id = $2 AND age > $3 AND manager_id = $2 LIMIT $4',
      parameters: [
        { kind: 'literal', value: 'x', type: 'text' },
        { kind: 'name', name: 'id' },
        { kind: 'position', n: 7 },
        { kind: 'literal', value: '3', type: 'integer' },
      ],
    })
  })
  test('with literals kept', () => {
    expect(answerTranspile(QUERY, 'keep')).toEqual({
      ok: true,
      sql: "SELECT * FROM users WHERE name = 'x' AND id = $1 AND age > $2 AND manager_id = $1 LIMIT 3",
      parameters: [
        { kind: 'name', name: 'id' },
        { kind: 'position', n: 7 },
      ],
    })
  })
})

test('the tree has no places, and is else the tree', () => {
  const { ast, ...rest } = answerParse(QUERY, 'keep')
  expect(JSON.stringify(ast)).not.toContain('"span"')
  expect(JSON.parse(JSON.stringify(QUERY, (name, value) => (name === 'span' ? undefined : value)))).toEqual(ast)
  expect(rest).toEqual({
    ...answerTranspile(QUERY, 'keep'),
    formatted: "get users\nwhere name = 'x' and id = :id and age > $7 and manager_id = :id\nlimit 3",
  })
})

test('a column called span stays', () => {
  expect(JSON.stringify(answerParse(parse('get spans fields span where span = 1'), 'keep').ast)).toContain('"span"')
})

test('explained and formatted', () => {
  expect(answerExplain(parse('cnt users'))).toMatchObject({ ok: true, action: 'count', table: 'users' })
  expect(answerFormat('get a;get b -- two')).toEqual({ ok: true, formatted: 'get a;\n\nget b -- two' })
})
