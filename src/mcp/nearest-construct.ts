/**
 * Determines the construct being written where a text became invalid: that of the last word before the
 * position that opens one.
 */
import type { Construct } from '../corpus/corpus.ts'

/** The constructs by the word they begin with. */
export const OPENS: Readonly<Record<string, Construct>> = {
  ...{
    get: 'get',
    select: 'get',
    count: 'count',
    cnt: 'count',
    export: 'export',
    fields: 'fields',
    distinct: 'distinct',
  },
  ...{ add: 'add', insert: 'add', set: 'set', update: 'set', del: 'del', delete: 'del', merge: 'merge', when: 'merge' },
  ...{ make: 'make', create: 'make', index: 'index', call: 'call', explain: 'explain', begin: 'transaction' },
  ...{ with: 'with', join: 'join', nest: 'nest', where: 'logic', and: 'logic', or: 'logic', not: 'logic' },
  ...{ between: 'between', in: 'in', exists: 'exists', like: 'pattern', ilike: 'pattern', is: 'is', regex: 'pattern' },
  ...{ group: 'aggregate', having: 'having', over: 'window', window: 'window', order: 'order', limit: 'limit' },
  ...{ offset: 'limit', for: 'lock', union: 'compound', intersect: 'compound', except: 'compound', case: 'case' },
  ...{ conflict: 'conflict', returning: 'returning', from: 'source' },
}

/** Limit on the characters searched backwards, because a text can be long. */
const LOOKED_BACK_MAX = 1_000

const WORD = /[a-z_]+/gi

/** The construct whose word is nearest before an offset of a text. */
export function constructNear(text: string, offset: number): Construct {
  const before = text.slice(Math.max(0, offset - LOOKED_BACK_MAX), offset)
  let near: Construct | null = null
  for (const [word] of before.matchAll(WORD)) near = opened(word) ?? near
  // If no word comes before the error, use the word at the error.
  return near ?? opened(/^[a-z_]+/i.exec(text.slice(offset, offset + LOOKED_BACK_MAX))?.[0] ?? '') ?? 'get'
}

function opened(word: string): Construct | null {
  const name = word.toLowerCase()
  return Object.hasOwn(OPENS, name) ? (OPENS[name] ?? null) : null
}
