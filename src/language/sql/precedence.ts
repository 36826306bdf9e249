/**
 * How tightly PostgreSQL binds (PostgreSQL manual, 4.1.6; `gram.y`). The language's own order differs: there `->` binds tighter than `+`,
 * here it shares a level with `||` and `@>` below `+`. The printer sets parentheses by this table and nothing else.
 */
export const LEVEL = {
  /** Anything fits: between commas, after a key word, in parentheses. */
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
  /** Every other operator, to the left. Also the least that a `b_expr` takes: a bound of `BETWEEN`, a `DEFAULT`. */
  operator: 7,
  add: 8,
  multiply: 9,
  minus: 10,
  cast: 11,
  primary: 12,
} as const
