/**
 * Query-language texts compiled as `POST /api/_query` compiles them, for tests that inspect the resulting
 * statement.
 */
import { type Context, compile } from '../../src/compile/compile.ts'
import type { ReadStatement, WriteStatement } from '../../src/compile/statement.ts'
import { parse } from '../../src/language/syntax/parse.ts'

/** `rowsMax` 0 means that all rows are returned. */
export function compileRead(text: string, context: Context, rowsMax = 0): ReadStatement {
  const tree = parse(text)
  if (tree.kind !== 'get') throw new Error(`${text} is not a read`)
  return compile(tree, context, { kind: 'read text', rowsMax })
}

export function compileWrite(text: string, context: Context): WriteStatement {
  const tree = parse(text)
  if (tree.kind !== 'add' && tree.kind !== 'set' && tree.kind !== 'del') throw new Error(`${text} is not a write`)
  return compile(tree, context, { kind: 'write text', changedMax: null })
}
