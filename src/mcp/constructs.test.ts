/**
 * Every construct of the language has a card with its grammar, notes, mistakes and examples, which
 * `svc_syntax` answers (docs/guides/agents.md#tools).
 */
import { expect, test } from 'vitest'
import { CORPUS } from '../../test/support/corpus.ts'
import { partNames, lookUpConstruct as partOfCorpus } from './constructs.ts'

const PART_NAMES = partNames(CORPUS)
const lookUpConstruct = (written: string) => partOfCorpus(written, CORPUS)

test.each(['where', 'join', 'with', 'conflict', 'order'])('%s has a card', name => {
  const { productions, constructs } = lookUpConstruct(name)
  expect(productions.map(production => production.name)).toContain(name)
  expect(constructs.length).toBeGreaterThan(0)
})

test.each(PART_NAMES)('%s has productions and constructs', name => {
  const part = lookUpConstruct(name)
  expect(part.productions.length).toBeGreaterThan(0)
  expect(part.constructs.length).toBeGreaterThan(0)
  expect(part.constructs.filter(construct => !Object.hasOwn(CORPUS.constructs, construct))).toEqual([])
})

test('every construct and every production can be requested', () => {
  expect(PART_NAMES).toEqual(
    expect.arrayContaining([...Object.keys(CORPUS.constructs), ...CORPUS.grammar.map(({ name }) => name)]),
  )
  expect(new Set(PART_NAMES).size).toBe(PART_NAMES.length)
})

test('letter case and blanks do not matter', () => {
  expect(lookUpConstruct('  ORDER   by ')).toMatchObject({ name: 'order by', constructs: ['order'] })
})

test.each([
  ['wher', 'did you mean "where"?'],
  ['__proto__', 'there are: get, source'],
  ['constructor', '; '],
  ['', 'there are: '],
])('%s is not a construct', (name, help) => {
  expect(() => lookUpConstruct(name)).toThrow(help)
})
