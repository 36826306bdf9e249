/** All requested lints as one statement: one round trip and one snapshot. */
import type { Query } from '../catalog/introspect.ts'
import type { Lint, LintRow, LintTarget } from './lint.ts'
import { COMMON_TABLES } from './shared.ts'

/** The result rows of each lint, by its name. */
export async function askLints(
  ask: Query,
  lints: readonly Lint[],
  { schemas, tenantColumn, exposedViews }: LintTarget,
): Promise<ReadonlyMap<string, readonly LintRow[]>> {
  const answers = new Map<string, LintRow[]>(lints.map(({ name }) => [name, []]))
  const parameters = [JSON.stringify(schemas), tenantColumn, JSON.stringify(exposedViews)]
  for (const [name, row] of await ask(statementOf(lints), parameters)) {
    answers.get(name ?? '')?.push(JSON.parse(row ?? 'null') as LintRow)
  }
  return answers
}

/** The condition contains no column, so PostgreSQL evaluates it before anything in the lint. */
function statementOf(lints: readonly Lint[]): string {
  const selects = lints.map(
    ({ name, rows }) => `
  select '${name}', row_to_json(x)::text from (${rows}) x where (select value from path) is not null`,
  )
  return `with recursive${COMMON_TABLES}${selects.join('\n  union all')}`
}
