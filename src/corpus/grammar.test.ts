/** The grammar is complete: it defines everything it mentions, and its words are those of the language. */
import { expect, test } from 'vitest'
import { CORPUS } from '../../test/support/corpus.ts'
import { extendHash, findWord } from '../language/syntax/vocabulary.ts'

const { examples, grammar } = CORPUS

/** Character classes, which the grammar describes only in words. */
const CHARACTERS = ['letter', 'mark', 'digit']

const TERMINAL = /"([^"\s]+)"|'[^']*'/g

function isKeyword(word: string): boolean {
  let hash = 0
  for (let at = 0; at < word.length; at++) hash = extendHash(hash, word.charCodeAt(at))
  return findWord(word, 0, word.length, hash) !== null
}

test('every production that is mentioned is defined once', () => {
  const defined = grammar.map(({ name }) => name)
  expect(new Set(defined).size).toBe(defined.length)
  const mentioned = grammar.flatMap(({ text }) => text.replace(TERMINAL, ' ').match(/[a-z]+/g) ?? [])
  expect([...new Set(mentioned)].filter(name => !defined.includes(name) && !CHARACTERS.includes(name))).toEqual([])
})

test('every production can be reached from the first', () => {
  const reached = new Set<string>(['query'])
  for (const name of reached) {
    const text = grammar.find(production => production.name === name)?.text ?? ''
    for (const next of text.replace(TERMINAL, ' ').match(/[a-z]+/g) ?? []) reached.add(next)
  }
  expect(grammar.map(({ name }) => name).filter(name => !reached.has(name))).toEqual([])
})

test("the grammar's words are keywords, except units and exponents", () => {
  const words = grammar
    .filter(({ name }) => name !== 'duration' && name !== 'exponent')
    .flatMap(({ text }) =>
      [...text.matchAll(TERMINAL)].flatMap(([, word = '']) => (/^[a-z]\w+$/.test(word) ? [word] : [])),
    )
  expect(new Set(words).size).toBeGreaterThan(100)
  expect([...new Set(words)].filter(word => !isKeyword(word))).toEqual([])
})

test('the grammar contains every word and sign of the examples', () => {
  const words = new Set(grammar.flatMap(({ text }) => [...text.matchAll(TERMINAL)].map(([, word]) => word)))
  const used = examples.flatMap(({ query }) => {
    // Names that are keywords are in backticks, except where only a name is possible.
    const bare = query.replace(/'''[\s\S]*?'''|'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--.*|\/\*.*?\*\//g, ' ')
    return bare.toLowerCase().match(/[a-z_]+/g) ?? []
  })
  const keywords = [...new Set(used)].filter(isKeyword)
  expect(keywords.length).toBeGreaterThan(100)
  expect(keywords.filter(word => !words.has(word))).toEqual([])
})

test('every production has examples', () => {
  const shown = new Set(examples.map(({ construct }) => construct))
  expect(grammar.filter(({ construct }) => construct !== null && !shown.has(construct))).toEqual([])
})
