// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the references to expand
import { expect, test } from 'vitest'
import { expand } from './expand.ts'

const environment = { HOST: 'db', EMPTY: '', DOLLAR: '${HOST}' }

test.each([
  ['plain text', 'plain text', false],
  ['postgres://${HOST}:5432/x', 'postgres://db:5432/x', true],
  ['${HOST}${HOST}', 'dbdb', true],
  ['${EMPTY}', '', true],
  ['${EMPTY:-else}', 'else', true],
  ['${MISSING:-else}', 'else', true],
  ['${MISSING:-}', '', true],
  ['${MISSING:-a:-b $x}', 'a:-b $x', true],
  ['$HOST costs $5 {x}', '$HOST costs $5 {x}', false],
  ['$${HOST}', '${HOST}', false],
  // Replaced values are not expanded again: a password can contain any text.
  ['${DOLLAR}', '${HOST}', true],
])('variables are expanded: %s', (text, result, expanded) => {
  expect(expand(text, environment)).toEqual({ text: result, expanded, problems: [] })
})

test('every missing variable is reported', () => {
  expect(expand('${A}${B}', environment).problems).toEqual([
    'the environment variable A is not set: set it or write ${A:-default}',
    'the environment variable B is not set: set it or write ${B:-default}',
  ])
})

test.each(['${}', '${1A}', '${A B}', '${A-x}', '${A', 'x${'])('%s is not a reference', text => {
  expect(expand(text, environment).problems).toEqual([expect.stringContaining('is not a reference: expected ${NAME}')])
})

test('names of Object.prototype are not variables', () => {
  expect(expand('${constructor}', environment).problems).toHaveLength(1)
})
