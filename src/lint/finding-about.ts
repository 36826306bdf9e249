/**
 * Combines all objects with the same problem into one finding with limited output, because a schema may have
 * thousands of tables.
 */
import type { Finding } from '../finding.ts'
import type { FoundObject } from './lint.ts'
import { printableName, printableSql } from './printable-names.ts'

export interface About extends Pick<Finding, 'level' | 'check'> {
  /** The problem, to be followed by the names. */
  readonly what: string
  /** The consequences, as a sentence. */
  readonly why: string
  /** The remedy if it is not SQL. */
  readonly remedy: string
}

const NAMED_MAX = 20
const STATEMENTS_MAX = 200

/** `found`: at least one. */
export function findingAbout({ what, why, remedy, ...about }: About, found: readonly FoundObject[]): Finding {
  const objects = found.map(({ object }) => printableName(object))
  const sql = [...new Set(found.flatMap(one => one.sql.filter(statement => statement !== null).map(printableSql)))]
  const more = objects.length > NAMED_MAX ? ` and ${objects.length - NAMED_MAX} more` : ''
  const named = `${objects.slice(0, NAMED_MAX).join(', ')}${more}`
  return {
    ...about,
    message: `${what}: ${named}. ${why}`,
    fix: sql.length === 0 ? remedy : printStatements(sql),
    ...{ objects, sql },
  }
}

function printStatements(sql: readonly string[]): string {
  const more =
    sql.length > STATEMENTS_MAX ? [`-- and ${sql.length - STATEMENTS_MAX} more like these: --json lists all`] : []
  return [...sql.slice(0, STATEMENTS_MAX), ...more].join('\n')
}
