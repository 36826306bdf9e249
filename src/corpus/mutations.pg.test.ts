/**
 * Mutated examples, with words removed, doubled, moved, or taken from other examples. Each is rejected with a
 * position, or is parsed back from its canonical form as the same tree and printed as SQL that PostgreSQL
 * parses.
 */
import fc from 'fast-check'
import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { CORPUS } from '../../test/support/corpus.ts'
import { clientFixture, databaseFixture } from '../../test/support/fixtures.ts'
import { hasGrammarFor } from '../../test/support/postgres-version.ts'
import { formatStatement } from '../language/format/format.ts'
import { printSql } from '../language/sql/print.ts'
import type { ParameterMode } from '../language/sql/printer.ts'
import { parse } from '../language/syntax/parse.ts'
import { QuerySyntaxError } from '../language/syntax/syntax-error.ts'
import type { Expression, Span, Statement } from '../language/tree/ast.ts'
import { LanguageError, unknownNode } from '../language/tree/error.ts'

const { schema, examples, invalid } = CORPUS

// ---- mutants ----------------------------------------------------------------------------------------------

interface Part {
  readonly kind: string
  readonly start: number
  readonly end: number
}

const EXPRESSIONS: ReadonlySet<string> = new Set<Expression['kind']>([
  ...([
    'and',
    'or',
    'not',
    'comparison',
    'pattern',
    'is',
    'distinct from',
    'between',
    'in',
    'exists',
    'json test',
  ] as const),
  ...([
    'arithmetic',
    'negate',
    'json step',
    'cast',
    'literal',
    'position',
    'named',
    'column',
    'function',
    'case',
  ] as const),
  ...(['subquery', 'array', 'row'] as const),
])

/** The span of each node of a text; all kinds of expressions count as one kind. */
function partsOf(text: string): readonly Part[] {
  const parts: Part[] = []
  JSON.stringify(parse(text), (_, node: unknown) => {
    if (typeof node === 'object' && node !== null && 'kind' in node && 'span' in node) {
      const { start, end } = node.span as Span
      const kind = String(node.kind)
      if (end > start) parts.push({ kind: EXPRESSIONS.has(kind) ? 'expression' : kind, start, end })
    }
    return node
  })
  return parts
}

const PIECES = new Map<string, string[]>()
for (const { query } of examples) {
  for (const { kind, start, end } of partsOf(query)) {
    const pieces = PIECES.get(kind) ?? []
    pieces.push(query.slice(start, end))
    PIECES.set(kind, pieces)
  }
}

/** Replaces a node of the text by a node of the same kind from another example. */
function graft(text: string, at: number, from: number): string {
  const parts = partsOf(text)
  const part = parts[at % parts.length]
  const pieces = PIECES.get(part?.kind ?? '') ?? []
  const piece = pieces[from % pieces.length]
  return part === undefined || piece === undefined
    ? text
    : `${text.slice(0, part.start)}${piece}${text.slice(part.end)}`
}

const TEXT = /'''[\s\S]*?'''|'(?:[^']|'')*'/
const QUOTED_NAME = /"(?:[^"]|"")*"|`(?:[^`]|``)*`/
const NAME_OR_SPACE = /[\p{L}\p{N}_]+|\s+/u
const OPERATOR = /->>|#>>|[-#]>|[!<>]=|<>|::|@[>@]|<@|&&|\|\||\?[|&]?/

/** Splits a text into words. Texts and quoted names stay whole, so that more mutants are valid. */
const WORDS = new RegExp(
  [TEXT, QUOTED_NAME, NAME_OR_SPACE, OPERATOR, /[\s\S]/].map(({ source }) => source).join('|'),
  'gu',
)

type Slip =
  | { readonly kind: 'leave out' | 'double'; readonly at: number }
  | { readonly kind: 'swap'; readonly at: number; readonly with: number }
  | { readonly kind: 'group'; readonly at: number; readonly length: number }

/** Applies a random editing mistake to a text. */
function slip(text: string, change: Slip): string {
  const words: string[] = text.match(WORDS) ?? []
  const place = change.at % Math.max(words.length, 1)
  switch (change.kind) {
    case 'leave out':
      words.splice(place, 1)
      break
    case 'double':
      words.splice(place, 0, words[place] ?? '', ' ')
      break
    case 'swap': {
      const other = change.with % Math.max(words.length, 1)
      ;[words[place], words[other]] = [words[other] ?? '', words[place] ?? '']
      break
    }
    case 'group':
      words.splice(Math.min(place + change.length, words.length), 0, ')')
      words.splice(place, 0, '(')
      break
    default:
      unknownNode(change)
  }
  return words.join('')
}

const at = fc.nat()
const anySlip: fc.Arbitrary<Slip> = fc.oneof(
  fc.record({ kind: fc.constantFrom('leave out' as const, 'double' as const), at }),
  fc.record({ kind: fc.constant('swap' as const), at, with: at }),
  fc.record({ kind: fc.constant('group' as const), at, length: fc.integer({ min: 1, max: 8 }) }),
)

const mutant = fc
  .record({
    text: fc.constantFrom(...[...examples, ...invalid].map(({ query }) => query)),
    grafts: fc.array(fc.record({ at, from: at }), { maxLength: 3 }),
    slips: fc.array(anySlip, { maxLength: 2 }),
  })
  .map(({ text, grafts, slips }) => {
    const grafted = grafts.reduce(
      (before, { at, from }) => (read(before) === null ? before : graft(before, at, from)),
      text,
    )
    return slips.reduce(slip, grafted)
  })

// ---- checking mutants -------------------------------------------------------------------------------------

const database = databaseFixture()
const client = clientFixture(() => database.adminUrl)

beforeAll(() => client.query(schema))

/** The tree, or null if the text is rejected with a complete error. */
function read(text: string): Statement | null {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof QuerySyntaxError)) throw error
    expect(error.line).toBeGreaterThan(0)
    expect(error.column).toBeGreaterThan(0)
    expect(error.offset).toBeLessThanOrEqual(text.length)
    expect(error.message).toContain('^')
    return null
  }
}

function plain(tree: unknown): unknown {
  return JSON.parse(JSON.stringify(tree, (name, value: unknown) => (name === 'span' ? undefined : value)))
}

function printed(tree: Statement, parameters: ParameterMode): string | null {
  try {
    return printSql(tree, { parameters }).text
  } catch (error) {
    if (error instanceof LanguageError) return null
    throw error
  }
}

const PREPARABLE: ReadonlySet<Statement['kind']> = new Set<Statement['kind']>(['get', 'add', 'set', 'del', 'merge'])
const DEFINITIONS: ReadonlySet<Statement['kind']> = new Set<Statement['kind']>(['make', 'index'])

/** PostgreSQL's error for a statement; empty if it accepts the statement. */
async function refusalOf(kind: Statement['kind'], sql: string): Promise<string> {
  try {
    if (PREPARABLE.has(kind)) {
      await client.query(`prepare mutant as ${sql}`)
      await client.query('deallocate mutant')
    } else if (DEFINITIONS.has(kind)) {
      await client.query('begin')
      await client.query(sql).finally(() => client.query('rollback'))
    }
    return ''
  } catch (error) {
    if (error instanceof pg.DatabaseError) return error.message
    throw error
  }
}

const RUNS = 2_000

test('a mutant is rejected, or its text and its SQL are valid', { timeout: 120_000 }, async () => {
  let understood = 0
  let taken = 0
  await fc.assert(
    fc.asyncProperty(mutant, async text => {
      const tree = read(text)
      if (tree === null) return
      understood++
      const formatted = formatStatement(tree)
      expect(plain(parse(formatted)), formatted).toEqual(plain(tree))
      expect(formatStatement(parse(formatted))).toBe(formatted)

      const [kept, lifted] = [printed(tree, 'keep'), printed(tree, 'all')]
      // The existence of SQL does not depend on how literals are printed.
      expect(lifted === null, text).toBe(kept === null)
      if (kept === null || lifted === null) return
      if (!hasGrammarFor(kept)) return
      const refusal = await refusalOf(tree.kind, kept)
      // All other errors are about names and types, which mutants combine at random.
      expect(refusal, kept).not.toMatch(/^syntax error/)
      expect(await refusalOf(tree.kind, lifted), lifted).toEqual(
        refusal === '' ? '' : expect.not.stringMatching(/^syntax error/),
      )
      if (refusal === '') taken++
    }),
    { numRuns: RUNS },
  )
  expect(understood).toBeGreaterThan(RUNS / 8)
  expect(taken).toBeGreaterThan(RUNS / 16)
})
