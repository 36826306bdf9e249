/** The definition of a lint: a query on the system catalogs, and the message about its rows. */
import type { Severity } from '../finding.ts'

/** The part of the configuration that lints use. */
export interface LintTarget {
  readonly schemas: readonly string[]
  readonly exposedViews: readonly string[]
  readonly tenantColumn: string
  readonly searchLanguage: string
  /** Accepted findings: `check`, or `check: object`. */
  readonly acceptedFindings: readonly string[]
}

export interface Lint {
  /** Stable: scripts and configurations name it. */
  readonly name: string
  /** The level of its findings, also under `strict`. */
  readonly level: Severity
  /** The level in `svc check`, if different: `note` for what a schema change cannot fix. */
  readonly levelInCheck?: Severity
  /**
   * True if it runs at every start; its findings cannot be accepted. Other lints run in `svc check` and with
   * `strict`.
   */
  readonly boot: boolean
  /** The problem, to be followed by the names. */
  readonly what: (tenantColumn: string) => string
  /** The consequences, as a sentence. */
  readonly why: string
  /** The remedy in words: for the reference, and for findings without SQL. */
  readonly remedy: string
  /**
   * A select over the common tables of `shared.ts`, with the columns `object` (unique within the lint) and
   * `sql` (an array of statements; NULL in it counts as left out). Names in `sql` are quoted by PostgreSQL's
   * own `format`.
   */
  readonly rows: string
  /** Used if SQL cannot decide: receives the rows with additional columns, and returns the findings. */
  readonly judge?: (rows: readonly LintRow[], target: LintTarget) => readonly FoundObject[]
}

/** One object that a lint is about. */
export interface FoundObject {
  readonly object: string
  readonly sql: readonly (string | null)[]
}

export interface LintRow extends FoundObject {
  readonly [column: string]: unknown
}
