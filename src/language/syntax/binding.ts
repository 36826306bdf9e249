/**
 * Precedence levels of the operators. They follow the grammar of this language, which differs from
 * PostgreSQL's.
 */
export const BINDING = {
  any: 0,
  or: 1,
  and: 2,
  not: 3,
  comparison: 4,
  concatenate: 5,
  add: 6,
  multiply: 7,
  negate: 8,
  step: 9,
  cast: 10,
  primary: 11,
} as const
