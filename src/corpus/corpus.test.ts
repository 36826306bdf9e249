/**
 * Each example of the corpus is parsed, formatted and printed as specified; each invalid one has exactly the
 * specified error.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { CORPUS } from '../../test/support/corpus.ts'
import { format } from '../language/format/format.ts'
import { withSqlHint } from '../language/hints/sql-hints.ts'
import { printSql } from '../language/sql/print.ts'
import { lineColumnAt } from '../language/syntax/line-column.ts'
import { parse } from '../language/syntax/parse.ts'
import { QuerySyntaxError } from '../language/syntax/syntax-error.ts'
import { LanguageError } from '../language/tree/error.ts'

const { constructs, examples, invalid } = CORPUS

/** A tree without its spans. */
function plain(tree: unknown): unknown {
  return JSON.parse(JSON.stringify(tree, (name, value: unknown) => (name === 'span' ? undefined : value)))
}

function refusal(query: string): LanguageError {
  try {
    printSql(parse(query))
  } catch (error) {
    if (error instanceof LanguageError) return error
    throw error
  }
  throw new Error(`no error for ${query}`)
}

test('the corpus has a minimum number of examples', () => {
  expect(examples.length).toBeGreaterThanOrEqual(150)
  expect(invalid.length).toBeGreaterThanOrEqual(40)
})

test('no example occurs twice', () => {
  const queries = [...examples, ...invalid].map(({ query }) => query)
  expect(queries.filter((query, index) => queries.indexOf(query) !== index)).toEqual([])
})

test('every construct has examples', () => {
  const shown = new Set(examples.map(({ construct }) => construct))
  expect(Object.keys(constructs).filter(construct => !shown.has(construct))).toEqual([])
})

test('notes are one non-empty line', () => {
  for (const { note } of [...examples, ...invalid]) expect(note).toMatch(/^\S.{2,150}[.?]$/)
})

describe('examples', () => {
  test.each(examples)('the text is parsed, formatted and printed: $query', ({ query, formatted = query, sql }) => {
    const tree = parse(query)
    expect(printSql(tree)).toMatchObject({ text: sql })
    expect(format(query)).toBe(formatted)
    expect(format(formatted)).toBe(formatted)
    expect(plain(parse(formatted))).toEqual(plain(tree))
  })

  test('the canonical form is omitted if it equals the query', () => {
    expect(examples.filter(({ query, formatted }) => query === formatted)).toEqual([])
  })
})

describe('invalid', () => {
  test.each(invalid)('the text has the specified error: $query', ({ query, error, line, column, hint = null }) => {
    const refused = refusal(query)
    if (refused instanceof QuerySyntaxError) {
      const { problem } = refused
      expect({ problem, line: refused.line, column: refused.column, hint: withSqlHint(refused, query).hint }).toEqual({
        ...{ problem: error, line, column, hint },
      })
    } else {
      expect(refused.message).toBe(error)
      expect(lineColumnAt(query, refused.span?.start ?? Number.NaN)).toEqual({ line, column })
      expect(hint).toBeNull()
    }
  })
})

test('the modules that browsers load do not import the corpus', () => {
  const loaded = new Set([new URL('../language/index.ts', import.meta.url).href])
  for (const file of loaded) {
    const text = readFileSync(fileURLToPath(file), 'utf8')
    for (const [, path = ''] of text.matchAll(/ from '([^']+)'/g)) loaded.add(new URL(path, file).href)
  }
  expect(loaded.size).toBeGreaterThan(40)
  expect([...loaded].filter(file => file.includes('/corpus/'))).toEqual([])
})
