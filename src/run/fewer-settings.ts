/** Chooses the runner of a statement by whether its own text reads session settings (decision 0043). */
import type { BoundStatement, CompiledStatement } from '../compile/statement.ts'
import type { Runner } from './run.ts'

const known = new WeakMap<CompiledStatement, boolean>()

/** Conditions of access policies and managed columns read the settings of the caller. */
function readsSettings(statement: CompiledStatement): boolean {
  const found = known.get(statement)
  if (found !== undefined) return found
  const reads = statement.text.includes('current_setting')
  known.set(statement, reads)
  return reads
}

/**
 * A runner that uses `all` for statements that read settings themselves, and `fewer`, which leaves out
 * settings that nothing in the database can read, for others.
 */
export function chooseRunner(all: Runner, fewer: Runner): Runner {
  const of = (statements: readonly BoundStatement[]): Runner =>
    statements.some(({ statement }) => readsSettings(statement)) ? all : fewer
  return {
    read: (identity, statements, worked) => of(statements).read(identity, statements, worked),
    write: (identity, statements, worked) => of(statements).write(identity, statements, worked),
    call: (identity, statement, how, worked) => of([statement]).call(identity, statement, how, worked),
    parse: (identity, statement, worked) => (readsSettings(statement) ? all : fewer).parse(identity, statement, worked),
    stream: (identity, statement, worked) => of([statement]).stream(identity, statement, worked),
    open: (identity, options, worked) => all.open(identity, options, worked),
  }
}
