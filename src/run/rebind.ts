/**
 * Binds values to another form of the same statement, which has its parameters in another order and different
 * literals.
 */
import type { BoundStatement, CompiledStatement, StatementParameter, StatementValue } from '../compile/statement.ts'

/** Values follow their parameters; literals belong to the other form. */
export function rebind<S extends CompiledStatement>(
  { statement, values }: BoundStatement<S>,
  other: S,
): BoundStatement<S> {
  if (isSame(statement.parameters, other.parameters)) return { statement: other, values }
  const byKey = new Map<string | number, StatementValue>()
  for (const [index, parameter] of statement.parameters.entries()) {
    if ('key' in parameter) byKey.set(parameter.key, values[index] ?? null)
  }
  return {
    statement: other,
    values: other.parameters.map(parameter =>
      'literal' in parameter ? parameter.literal : (byKey.get(parameter.key) ?? null),
    ),
  }
}

/** Usually true: then nothing needs to be allocated. */
function isSame(some: readonly StatementParameter[], others: readonly StatementParameter[]): boolean {
  return some.length === others.length && some.every((one, index) => identityOf(one) === identityOf(others[index]))
}

function identityOf(parameter: StatementParameter | undefined): string | number | undefined {
  if (parameter === undefined) return undefined
  return 'key' in parameter ? parameter.key : `literal ${parameter.literal}`
}
