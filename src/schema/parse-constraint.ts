/** Keys, references, checks and exclusions: each on one line, except inside parentheses. */

import {
  type Cursor,
  expectSymbol,
  failExpecting,
  keywordAt,
  readMethod,
  readName,
  readNames,
  readTableName,
  refuseAt,
  skipInLine,
  spanSince,
  takeKeyword,
  takeSymbol,
} from './cursor.ts'
import { IN_PARENTHESES, readElements, readExpression } from './expression.ts'
import type {
  Check,
  Exclusion,
  ForeignKeyDefinition,
  KeyConstraint,
  Name,
  PartitionDefinition,
  ReferenceAction,
  ReferenceDefinition,
  Timing,
} from './model.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export function readKey(cursor: Cursor, start: number, kind: KeyConstraint['kind']): KeyConstraint {
  const columns = readNames(cursor)
  let nullsDistinct = true
  let withoutOverlaps = false
  let timing: Timing = 'immediate'
  let end = cursor.at
  for (;;) {
    skipInLine(cursor)
    if (kind === 'unique' && nullsDistinct && takeKeyword(cursor, 'nulls_not_distinct')) nullsDistinct = false
    else if (!withoutOverlaps && takeKeyword(cursor, 'without_overlaps')) withoutOverlaps = true
    else if (timing === 'immediate' && isTiming(cursor)) timing = readTiming(cursor)
    else break
    end = cursor.at
  }
  return { kind, columns, nullsDistinct, withoutOverlaps, timing, span: { start, end } }
}

/** timing = "deferrable" | "initially_deferred" ; */
function isTiming(cursor: Cursor): boolean {
  const keyword = keywordAt(cursor)
  return keyword === 'deferrable' || keyword === 'initially_deferred'
}

function readTiming(cursor: Cursor): Timing {
  return takeKeyword(cursor, 'deferrable')
    ? 'deferrable'
    : takeKeyword(cursor, 'initially_deferred')
      ? 'deferred'
      : 'immediate'
}

export function readForeignKey(cursor: Cursor, start: number): ForeignKeyDefinition {
  const columns = readNames(cursor)
  skipInLine(cursor)
  const at = cursor.at
  if (!takeKeyword(cursor, 'references')) failExpecting(cursor, ['references'])
  const references = readReference(cursor, at, columns.length)
  return { kind: 'foreign key', columns, references, span: spanSince(cursor, start) }
}

/**
 * reference = "references" table names { "on_delete" action | "on_update" action | "match_full" | "period" |
 * timing } ; follows the keyword.
 */
export function readReference(cursor: Cursor, start: number, width: number): ReferenceDefinition {
  skipInLine(cursor)
  const table = readTableName(cursor, 'a table')
  skipInLine(cursor)
  const at = cursor.at
  const columns = readNames(cursor)
  if (columns.length !== width)
    refuseAt(cursor, at, `${width} of this table refer to ${columns.length} of the other; the numbers must be equal`)
  const found: Mutable<Omit<ReferenceDefinition, 'kind' | 'table' | 'columns' | 'span'>> = {
    ...{ onDelete: 'no action', onDeleteColumns: [], onUpdate: 'no action' },
    ...{ matchFull: false, period: false, timing: 'immediate' },
  }
  const seen = new Set<string>()
  let end = cursor.at
  for (;;) {
    skipInLine(cursor)
    const word = isTiming(cursor) ? 'timing' : keywordAt(cursor)
    if (!REFERENCE_WORDS.has(word) || seen.has(word)) break
    seen.add(word)
    if (word === 'timing') found.timing = readTiming(cursor)
    else {
      cursor.at += word.length
      readReferenceWord(cursor, word, found)
    }
    end = cursor.at
  }
  return { kind: 'reference', table, columns, ...found, span: { start, end } }
}

const REFERENCE_WORDS: ReadonlySet<string> = new Set(['on_delete', 'on_update', 'match_full', 'period', 'timing'])

function readReferenceWord(
  cursor: Cursor,
  word: string,
  found: {
    -readonly [K in 'onDelete' | 'onDeleteColumns' | 'onUpdate' | 'matchFull' | 'period']: ReferenceDefinition[K]
  },
): void {
  if (word === 'match_full') found.matchFull = true
  else if (word === 'period') found.period = true
  else if (word === 'on_update') found.onUpdate = readAction(cursor)
  else {
    found.onDelete = readAction(cursor)
    found.onDeleteColumns = found.onDelete.startsWith('set ') ? readOptionalNames(cursor) : []
  }
}

function readOptionalNames(cursor: Cursor): readonly Name[] {
  const before = cursor.at
  skipInLine(cursor)
  if (cursor.text[cursor.at] === '(') return readNames(cursor)
  cursor.at = before
  return []
}

const ACTIONS: readonly ReferenceAction[] = ['no action', 'restrict', 'cascade', 'set null', 'set default']

/** action = "no_action" | "restrict" | "cascade" | "set_null" | "set_default" ; or as two words. */
function readAction(cursor: Cursor): ReferenceAction {
  skipInLine(cursor)
  for (const action of ACTIONS) {
    const before = cursor.at
    const [first = '', second] = action.split(' ')
    if (takeKeyword(cursor, action.replace(' ', '_'))) return action
    if (takeKeyword(cursor, first)) {
      skipInLine(cursor)
      if (second === undefined || takeKeyword(cursor, second)) return action
    }
    cursor.at = before
  }
  failExpecting(
    cursor,
    ACTIONS.map(action => action.replace(' ', '_')),
  )
}

export function readCheck(cursor: Cursor, start: number): Check {
  return { kind: 'check', expression: readParenthesized(cursor), span: spanSince(cursor, start) }
}

export function readParenthesized(cursor: Cursor): string {
  skipInLine(cursor)
  if (!takeSymbol(cursor, '(')) failExpecting(cursor, ['('])
  const expression = readExpression(cursor, IN_PARENTHESES)
  if (!takeSymbol(cursor, ')')) failExpecting(cursor, [')'])
  return expression
}

export function readExclusion(cursor: Cursor, start: number): Exclusion {
  const method = takeKeyword(cursor, 'using') ? readMethod(cursor) : null
  expectSymbol(cursor, '(')
  const elements = readElements(cursor)
  let end = cursor.at
  skipInLine(cursor)
  const where = takeKeyword(cursor, 'where') ? readParenthesized(cursor) : null
  if (where !== null) end = cursor.at
  skipInLine(cursor)
  const timing = readTiming(cursor)
  if (timing !== 'immediate') end = cursor.at
  return { kind: 'exclusion', method, elements, where, timing, span: { start, end } }
}

export function readPartitionClause(cursor: Cursor, start: number): PartitionDefinition {
  const strategy = readName(cursor, 'a strategy: range, list or hash').text
  expectSymbol(cursor, '(')
  return { kind: 'partition', strategy, elements: readElements(cursor), span: spanSince(cursor, start) }
}
