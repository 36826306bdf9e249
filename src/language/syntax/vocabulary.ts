/**
 * The words of the language, and which of them may stand as names. Whatever a word is, in back-ticks, after a dot and after `as` it
 * is a name.
 */

import { BINDING } from './binding.ts'

/** Begin or continue a clause: bare names only where what follows them could follow nothing but a name (`limit = 5`, `from, to`). */
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

/** A clause only together with `by`. */
const BEFORE_BY = ['group', 'order', 'partition'] as const

/** Are or begin an expression of their own. */
const OPENING = ['case', 'false', 'not', 'null', 'true'] as const

/** Begin an expression of their own before a parenthesis. */
const CALLS = ['cast', 'exists', 'extract', 'row', 'substring'] as const

/** Mean something in one place only; everywhere else they are ordinary names, though not bare aliases. */
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

export type Keyword =
  | (typeof CLAUSES)[number]
  | (typeof BEFORE_BY)[number]
  | (typeof OPENING)[number]
  | (typeof CALLS)[number]
  | (typeof CONTEXTUAL)[number]

/** What a keyword is besides itself. */
export const ROLE = {
  /** An ordinary name where it is no keyword. */
  name: 0,
  clause: 1,
  beforeBy: 2,
  opening: 3,
  call: 4,
} as const

/** How tightly the words between two operands bind, by the table of the language; `not` as in `not like`. */
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

/** The words that may follow an operand, for suggestions. */
export const INFIX_WORDS: readonly string[] = Object.keys(INFIX)

/** A keyword as the lexer finds it. */
export interface Word {
  readonly text: Keyword
  readonly role: number
  /** 0: stands between no operands. */
  readonly infix: number
  /** Another keyword of the same hash. */
  readonly next: Word | null
}

const SLOTS = 1024

const WORDS: readonly (Word | null)[] = table()

function table(): readonly (Word | null)[] {
  const slots: (Word | null)[] = new Array<null>(SLOTS).fill(null)
  const enter = (words: readonly Keyword[], role: number): void => {
    for (const text of words) {
      let hash = 0
      for (let at = 0; at < text.length; at++) hash = hashed(hash, text.charCodeAt(at))
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

/** The hash of a word grows by each of its letters; their case does not count. */
export function hashed(hash: number, code: number): number {
  return (Math.imul(hash, 31) + (code | 32)) | 0
}

/** The keyword between two offsets, whose letters have that hash; null where the word is none. No text is made on the way. */
export function findWord(text: string, start: number, end: number, hash: number): Word | null {
  for (let word = WORDS[hash & (SLOTS - 1)] ?? null; word !== null; word = word.next) {
    if (word.text.length === end - start && isSpelled(word.text, text, start)) return word
  }
  return null
}

/** Letters are equal but for bit 32, which is their case; of the other characters of a word no two differ in it alone. */
function isSpelled(word: string, text: string, start: number): boolean {
  for (let at = 0; at < word.length; at++) {
    if ((word.charCodeAt(at) | 32) !== (text.charCodeAt(start + at) | 32)) return false
  }
  return true
}
