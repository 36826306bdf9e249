/** All lints that are asked about, as one statement: one round trip and one snapshot, whatever their number. */
import type { Query } from '../catalog/introspect.ts'
import type { Lint, LintRow, LintTarget } from './lint.ts'
import { SHARED } from './shared.ts'

/** The rows that each lint's select answers, by name of the lint. */
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

/** The condition has no column in it, so PostgreSQL evaluates it before anything of the lint. */
function statementOf(lints: readonly Lint[]): string {
  const selects = lints.map(
    ({ name, rows }) => `
  select '${name}', row_to_json(x)::text from (${rows}) x where (select value from path) is not null`,
  )
  return `with recursive${SHARED}${selects.join('\n  union all')}`
}
