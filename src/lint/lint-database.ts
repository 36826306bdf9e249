/** Runs lints on a database: one finding for each lint with results. */
import type { Query } from '../catalog/introspect.ts'
import type { Finding } from '../finding.ts'
import { readAcceptance } from './accept.ts'
import { findingAbout } from './finding-about.ts'
import type { Lint, LintTarget } from './lint.ts'
import { LINTS } from './lints.ts'
import { POSTGREST_LINTS } from './postgrest.ts'
import { printableName } from './printable-names.ts'
import { askLints } from './statement.ts'

export interface DatabaseLints {
  readonly findings: readonly Finding[]
  /** How many objects are in no finding because the configuration accepts them. */
  readonly accepted: number
}

/** Runs the lints of every start (docs/guides/checking.md#at-startup), in one round trip. */
export async function bootDangers(ask: Query, target: LintTarget): Promise<readonly Finding[]> {
  return findingsOf(
    ask,
    target,
    LINTS.filter(({ boot }) => boot),
    () => false,
  )
}

/**
 * Runs all lints in one round trip; a schema of thousands of tables takes some seconds. `purpose` determines
 * the levels of findings.
 */
export async function lintDatabase(
  ask: Query,
  target: LintTarget,
  purpose: 'check' | 'strict' = 'check',
): Promise<DatabaseLints> {
  const acceptance = readAcceptance(target.acceptedFindings, [...LINTS, ...POSTGREST_LINTS])
  let accepted = 0
  const findings = await findingsOf(ask, target, LINTS, (lint, object) => {
    const isAccepted = acceptance.has(lint.name, object) && !lint.boot
    if (isAccepted) accepted++
    return isAccepted
  })
  const leveled = purpose === 'check' ? findings.map(asInCheck) : findings
  return { findings: [...acceptance.findings, ...leveled], accepted }
}

function asInCheck(finding: Finding): Finding {
  const level = LINTS.find(({ name }) => name === finding.check)?.levelInCheck
  return level === undefined ? finding : { ...finding, level }
}

async function findingsOf(
  ask: Query,
  target: LintTarget,
  lints: readonly Lint[],
  isAccepted: (lint: Lint, object: string) => boolean,
): Promise<readonly Finding[]> {
  const answers = await askLints(ask, lints, target)
  return lints.flatMap(lint => {
    const rows = answers.get(lint.name) ?? []
    const found = (lint.judge?.(rows, target) ?? rows)
      .map(({ object, sql }) => ({ object: printableName(object), sql }))
      .filter(({ object }) => !isAccepted(lint, object))
      .sort((a, b) => (a.object < b.object ? -1 : 1))
    if (found.length === 0) return []
    const { name: check, level, what, why, remedy } = lint
    return [findingAbout({ level, check, what: what(printableName(target.tenantColumn)), why, remedy }, found)]
  })
}
