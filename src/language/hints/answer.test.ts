/** docs/guides/agents.md#tools: `parameterized`, and the meaning of each entry of `parameters`. */
import { describe, expect, test } from 'vitest'
import { parse } from '../syntax/parse.ts'
import { answerExplain, answerFormat, answerParse, answerTranspile } from './answer.ts'

const QUERY = parse("get users where name = 'x' and id = :id and age > $7 and manager_id = :id limit 3")

describe('parameters', () => {
  test('lifted literals are in the order of first use, and each parameter of the query occurs once', () => {
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
  test('kept literals are not among the parameters', () => {
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

test('the tree is complete except for its spans', () => {
  const { ast, ...rest } = answerParse(QUERY, 'keep')
  expect(JSON.stringify(ast)).not.toContain('"span"')
  expect(JSON.parse(JSON.stringify(QUERY, (name, value) => (name === 'span' ? undefined : value)))).toEqual(ast)
  expect(rest).toEqual({
    ...answerTranspile(QUERY, 'keep'),
    formatted: "get users\nwhere name = 'x' and id = :id and age > $7 and manager_id = :id\nlimit 3",
  })
})

test('a column called span stays in the tree', () => {
  expect(JSON.stringify(answerParse(parse('get spans fields span where span = 1'), 'keep').ast)).toContain('"span"')
})

test('a statement is explained and formatted', () => {
  expect(answerExplain(parse('cnt users'))).toMatchObject({ ok: true, action: 'count', table: 'users' })
  expect(answerFormat('get a;get b -- two')).toEqual({ ok: true, formatted: 'get a;\n\nget b -- two' })
})
