/**
 * Limits on what one statement may have PostgreSQL plan and build. Neither planning nor building a value
 * checks a timeout, so both are limited in advance.
 */

export interface StatementLimits {
  /** Joins of one query level. 0: no limit. */
  readonly maxJoins: number
  /**
   * Tables, views, functions, common tables and subqueries that a statement reads from, those of views and
   * policies included. 0: no limit.
   */
  readonly maxRelations: number
  /**
   * Bytes of a value that a function builds from a number: `repeat`, `lpad`, `format`, `array_fill`. 0: no
   * limit.
   */
  readonly maxBuiltValueBytes: number
  /**
   * Bytes that the aggregates of a transaction collect (`array_agg`, `string_agg`), and bytes of the arrays
   * of related rows in one row. 0: no limit.
   */
  readonly maxCollectedBytes: number
  /** Copies of values of unknown size that functions and operators make for one row. 0: no limit. */
  readonly maxCopiedValues: number
  /** Rows of one `generate_series`. 0: no limit. */
  readonly maxSeriesRows: number
  /** Bytes of all patterns of `like` and `ilike` in a statement, from the first `%` of each. 0: no limit. */
  readonly maxPatternBytes: number
  /** Elements of an operand of `@>`, `<@`, `&&`, `?|` and `?&` that is not a column. 0: no limit. */
  readonly maxContainedElements: number
  /** Expressions of a statement whose subqueries have been merged. 0: no limit. */
  readonly maxExpressions: number
  /**
   * Multiplications and divisions of numbers of the largest size that `numeric` has; smaller ones count by
   * their steps. 0: no limit.
   */
  readonly maxNumericProducts: number
  /**
   * Characters of a query text that its SQL repeats, because aliases in `having` stand for their expressions.
   * 0: no limit.
   */
  readonly maxRepeatedCharacters: number
  /** How often a query text mentions aliases in `having`. 0: no limit. */
  readonly maxRepetitions: number
  /** Bytes of the arrays and composite values of a body in PostgreSQL's text form. 0: no limit. */
  readonly maxTextFormBytes: number
}

/**
 * Measured for decision 0029. A text has at most 16 384 tokens, and merged subqueries can repeat expressions:
 * planning 32 768 of them took 0.2 s and 50 MB.
 */
export const STATEMENT_LIMITS: StatementLimits = {
  maxJoins: 16,
  maxRelations: 64,
  maxBuiltValueBytes: 1_048_576,
  maxCollectedBytes: 67_108_864,
  maxCopiedValues: 256,
  maxSeriesRows: 1_000_000,
  maxPatternBytes: 2_048,
  maxContainedElements: 1_000,
  maxExpressions: 32_768,
  maxNumericProducts: 64,
  maxRepeatedCharacters: 65_536,
  maxRepetitions: 64,
  maxTextFormBytes: 67_108_864,
}

/** No limits, for conditions that operators write in policy files. */
export const UNLIMITED: StatementLimits = {
  ...{ maxJoins: 0, maxRelations: 0, maxBuiltValueBytes: 0, maxSeriesRows: 0, maxPatternBytes: 0 },
  ...{ maxCollectedBytes: 0, maxCopiedValues: 0 },
  ...{ maxContainedElements: 0, maxExpressions: 0, maxNumericProducts: 0, maxRepeatedCharacters: 0 },
  ...{ maxRepetitions: 0, maxTextFormBytes: 0 },
}

/** The configuration key of each limit, for messages and for the metric that counts rejections. */
export const LIMIT_NAMES = {
  maxJoins: 'max_joins',
  maxRelations: 'max_relations',
  maxBuiltValueBytes: 'max_built_value_bytes',
  maxCollectedBytes: 'max_collected_bytes',
  maxCopiedValues: 'max_copied_values',
  maxSeriesRows: 'max_series_rows',
  maxPatternBytes: 'max_pattern_bytes',
  maxContainedElements: 'max_contained_elements',
  maxExpressions: 'max_expressions',
  maxNumericProducts: 'max_numeric_products',
  maxRepeatedCharacters: 'max_repeated_characters',
  maxRepetitions: 'max_repetitions',
  maxBatchKeySets: 'max_batch_key_sets',
  maxBatchOperations: 'max_batch_operations',
  maxBatchReferences: 'max_batch_references',
  maxInspectSteps: 'max_inspect_steps',
  maxResultBytes: 'max_result_bytes',
  maxParameters: 'max_parameters',
  maxInValues: 'max_in_values',
  maxQueryParameters: 'max_query_parameters',
  maxTextFormBytes: 'max_text_form_bytes',
} as const

export type LimitName = (typeof LIMIT_NAMES)[keyof typeof LIMIT_NAMES]
