/**
 * Accepted findings, `accepted_findings` of the configuration: `foreign-key-index` accepts all findings of a
 * lint, `foreign-key-index: fk_name on table` one.
 */
import type { Finding } from '../finding.ts'
import { nearest } from '../text/nearest.ts'
import type { Lint } from './lint.ts'

export interface Acceptance {
  has(lint: string, object: string): boolean
  /** Findings about invalid entries. */
  readonly findings: readonly Finding[]
}

export function readAcceptance(entries: readonly string[], lints: readonly Lint[]): Acceptance {
  const split = entries.map(entry => {
    const colon = entry.indexOf(':')
    return colon < 0
      ? { check: entry.trim(), object: null }
      : { check: entry.slice(0, colon).trim(), object: entry.slice(colon + 1).trim() }
  })
  return {
    has: (lint, name) => split.some(({ check, object }) => check === lint && (object === null || object === name)),
    findings: split.flatMap(({ check }) => refusal(check, lints) ?? []),
  }
}

function refusal(check: string, lints: readonly Lint[]): Finding | null {
  const lint = lints.find(({ name }) => name === check)
  if (lint === undefined) {
    const names = lints.filter(({ boot }) => !boot).map(({ name }) => name)
    const meant = nearest(check, names)
    return error(
      `accepted_findings names ${JSON.stringify(check)}, which is not a check.`,
      meant === null ? `Name one of ${names.join(', ')}.` : `Did you mean ${meant}?`,
    )
  }
  if (!lint.boot) return null
  return error(
    `accepted_findings names ${check}, which cannot be accepted: it is checked at every start.`,
    `${lint.remedy} Then remove the entry.`,
  )
}

function error(message: string, fix: string): Finding {
  return { level: 'error', message, fix }
}
