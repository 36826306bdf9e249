/**
 * The keywords, and which of them can be names. In backticks, after a dot and after `as`, every word is a
 * name.
 */

import { BINDING } from './binding.ts'

/**
 * Keywords that start or continue a clause. Unquoted, they are names only if the next token can follow only a
 * name (`limit = 5`, `from, to`).
 */
const CLAUSES = [
  'and',
  'as',
  'asc',
  'between',
  'conflict',
  'cross',
  'desc',
  'distinct',
  'else',
  'end',
  'except',
  'fields',
  'for',
  'from',
  'full',
  'having',
  'ilike',
  'in',
  'inner',
  'intersect',
  'is',
  'join',
  'left',
  'like',
  'limit',
  'nest',
  'offset',
  'on',
  'or',
  'returning',
  'right',
  'then',
  'union',
  'using',
  'values',
  'when',
  'where',
  'window',
  'with',
] as const

/** Keywords that start a clause only with `by`. */
const BEFORE_BY = ['group', 'order', 'partition'] as const

/** Keywords that are an expression or start one. */
const OPENING = ['case', 'false', 'not', 'null', 'true'] as const

/** Keywords that start an expression if a parenthesis follows. */
const CALLS = ['cast', 'exists', 'extract', 'row', 'substring'] as const

/** Keywords in one position only. Everywhere else they are ordinary names, but not bare aliases. */
const CONTEXTUAL = [
  'add',
  'all',
  'begin',
  'by',
  'call',
  'check',
  'cnt',
  'commit',
  'count',
  'create',
  'current',
  'default',
  'defaults',
  'del',
  'delete',
  'explain',
  'export',
  'filter',
  'first',
  'following',
  'get',
  'groups',
  'index',
  'insert',
  'json_exists',
  'json_query',
  'json_value',
  'key',
  'last',
  'lateral',
  'locked',
  'make',
  'many',
  'matched',
  'merge',
  'nothing',
  'nowait',
  'nullable',
  'nulls',
  'over',
  'pk',
  'preceding',
  'primary',
  'range',
  'recursive',
  'ref',
  'regex',
  'rollback',
  'rows',
  'set',
  'share',
  'similar',
  'skip',
  'source',
  'target',
  'to',
  'unbounded',
  'unique',
  'update',
] as const

/** A keyword of the language, in lower case. */
export type Keyword =
  | (typeof CLAUSES)[number]
  | (typeof BEFORE_BY)[number]
  | (typeof OPENING)[number]
  | (typeof CALLS)[number]
  | (typeof CONTEXTUAL)[number]

/** The role of a keyword, which determines where it can be a name. */
export const ROLE = {
  /** An ordinary name wherever it is not a keyword. */
  name: 0,
  clause: 1,
  beforeBy: 2,
  opening: 3,
  call: 4,
} as const

/** Precedence of the keywords that are infix operators; `not` as in `not like`. */
const INFIX: Readonly<Partial<Record<Keyword, number>>> = {
  or: BINDING.or,
  and: BINDING.and,
  is: BINDING.comparison,
  not: BINDING.comparison,
  in: BINDING.comparison,
  between: BINDING.comparison,
  like: BINDING.comparison,
  ilike: BINDING.comparison,
  similar: BINDING.comparison,
  regex: BINDING.comparison,
  json_exists: BINDING.comparison,
  json_query: BINDING.comparison,
  json_value: BINDING.comparison,
}

/** The keywords that can follow an operand, for suggestions. */
export const INFIX_WORDS: readonly string[] = Object.keys(INFIX)

/** An entry in the lexer's keyword table. */
export interface Word {
  readonly text: Keyword
  readonly role: number
  /** Precedence of an infix operator; 0 for all others. */
  readonly infix: number
  /** The next keyword with the same hash. */
  readonly next: Word | null
}

const SLOTS = 1024

const WORDS: readonly (Word | null)[] = table()

function table(): readonly (Word | null)[] {
  const slots: (Word | null)[] = new Array<null>(SLOTS).fill(null)
  const enter = (words: readonly Keyword[], role: number): void => {
    for (const text of words) {
      let hash = 0
      for (let at = 0; at < text.length; at++) hash = extendHash(hash, text.charCodeAt(at))
      const slot = hash & (SLOTS - 1)
      slots[slot] = { text, role, infix: INFIX[text] ?? 0, next: slots[slot] ?? null }
    }
  }
  enter(CLAUSES, ROLE.clause)
  enter(BEFORE_BY, ROLE.beforeBy)
  enter(OPENING, ROLE.opening)
  enter(CALLS, ROLE.call)
  enter(CONTEXTUAL, ROLE.name)
  return slots
}

/** Adds one character to the hash of a word, ignoring its case. */
export function extendHash(hash: number, code: number): number {
  return (Math.imul(hash, 31) + (code | 32)) | 0
}

/** The keyword between two offsets, given its hash; null if absent. Allocates no string. */
export function findWord(text: string, start: number, end: number, hash: number): Word | null {
  for (let word = WORDS[hash & (SLOTS - 1)] ?? null; word !== null; word = word.next) {
    if (word.text.length === end - start && isSpelled(word.text, text, start)) return word
  }
  return null
}

/**
 * Upper- and lower-case letters differ only in bit 32; no two other characters of a word differ only in that
 * bit.
 */
function isSpelled(word: string, text: string, start: number): boolean {
  for (let at = 0; at < word.length; at++) {
    if ((word.charCodeAt(at) | 32) !== (text.charCodeAt(start + at) | 32)) return false
  }
  return true
}
