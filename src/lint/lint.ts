/** What a lint is: a question to the system catalogue, and what to tell somebody about the rows that answer it. */
import type { Level } from '../finding.ts'

/** The part of the configuration that lints look at. */
export interface LintTarget {
  readonly schemas: readonly string[]
  readonly exposedViews: readonly string[]
  readonly tenantColumn: string
  readonly searchLanguage: string
  /** Findings that were decided to be right as they are: `check`, or `check: object`. */
  readonly acceptedFindings: readonly string[]
}

export interface Lint {
  /** Stable: scripts and configurations name it. */
  readonly name: string
  /** Of its findings, under `strict` as well. */
  readonly level: Level
  /** Of its findings in `svc check`, where that is another: `note` for what a schema cannot mend. */
  readonly levelInCheck?: Level
  /** Looked for at every boot and never accepted. The others are for `svc check` and `strict`. */
  readonly boot: boolean
  /** What has been found, to be followed by the names. */
  readonly what: (tenantColumn: string) => string
  /** What can come of it; a sentence. */
  readonly why: string
  /** What to do, in words: for the reference, and where there is no SQL for it. */
  readonly remedy: string
  /**
   * A select over the common tables of `shared.ts`, with the columns `object` (unique within the lint) and `sql`
   * (an array of statements; NULL in it counts as left out). Names in `sql` are quoted by PostgreSQL's own `format`.
   */
  readonly rows: string
  /** Where SQL is not enough to tell what is wrong: the rows with more columns in, those that are findings out. */
  readonly judge?: (rows: readonly LintRow[], target: LintTarget) => readonly Found[]
}

/** One object that a lint is about. */
export interface Found {
  readonly object: string
  readonly sql: readonly (string | null)[]
}

export interface LintRow extends Found {
  readonly [column: string]: unknown
}
