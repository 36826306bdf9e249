/**
 * PostgreSQL's operator precedence (PostgreSQL manual, 4.1.6; `gram.y`). The language has a different order:
 * its `->` has a higher precedence than `+`, but in PostgreSQL it shares a level with `||` and `@>` below
 * `+`. The printer sets parentheses by this table alone.
 */
export const LEVEL = {
  /** Any expression: between commas, after a keyword, in parentheses. */
  any: 0,
  or: 1,
  and: 2,
  not: 3,
  /** `IS …`; not associative. */
  is: 4,
  /** `= <> < <= > >=`; not associative. */
  comparison: 5,
  /** `BETWEEN`, `IN`, `LIKE`, `ILIKE`, `SIMILAR TO`; not associative. */
  like: 6,
  /**
   * All other operators, left-associative. Also the lowest level of a `b_expr`: a bound of `BETWEEN`, a
   * `DEFAULT`.
   */
  operator: 7,
  add: 8,
  multiply: 9,
  minus: 10,
  cast: 11,
  primary: 12,
} as const
