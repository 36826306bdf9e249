/** Finds joins and nests whose condition the printer guesses from the names of the tables. */

import { nestKey } from '../sql/print-nest.ts'
import { joinCondition } from '../sql/print-source.ts'
import type { Expression, Source, Span, Statement } from '../tree/ast.ts'
import type { NamedSource } from '../tree/scope.ts'
import { rewrite } from '../tree/walk.ts'
import { expressionText, targetText } from './explain-text.ts'

/** A guessed condition, described in a sentence. */
export interface GuessedJoin {
  readonly note: string
  readonly span: Span
}

/** The guessed conditions of a statement, in the order of the text. */
export function guessedJoins(statement: Statement): readonly GuessedJoin[] {
  const guesses: GuessedJoin[] = []
  const add = (what: string, on: Expression, span: Span): void => {
    const note =
      `${what} is on ${expressionText(on)}, which is inferred from the names; ` +
      'write "on", or let svc transpile read the foreign keys: --schema FILE or --database'
    guesses.push({ note, span })
  }
  rewrite(statement, {
    join(join, { relations: [first] }) {
      const { source, type, lateral, on, span } = join
      if (on !== null || type === 'cross' || lateral || source.kind !== 'table source' || first === undefined)
        return join
      add(`the join of ${targetText(source.table, source.alias)}`, joinCondition(join, sourceOf(first, span)), span)
      return join
    },
    nest(nest, { parent }) {
      if (nest.on !== null || parent === null) return nest
      add(`the nest of ${targetText(nest.table, nest.alias)}`, nestKey(nest, parent), nest.span)
      return nest
    },
  })
  return guesses.sort((a, b) => a.span.start - b.span.start)
}

/** A source with the names of a relation in scope. */
function sourceOf({ name, table }: NamedSource, span: Span): Source {
  return {
    kind: 'table source',
    table: table ?? { kind: 'table', schema: null, name, span },
    alias: name,
    condition: null,
    span,
  }
}
