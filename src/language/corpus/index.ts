/**
 * The corpus: what the language can say, by example, each with its canonical form and its SQL; and what it refuses, each with the error. The
 * tests hold the language to it, the reference shows it. Not part of `svc-gateway/language`, so that no browser loads it.
 */

import { AGGREGATES } from './aggregates.ts'
import { COMMANDS } from './commands.ts'
import { COMMON_TABLES } from './common-tables.ts'
import { COMPOUNDS } from './compounds.ts'
import { CONDITIONS } from './conditions.ts'
import { DEFINITIONS } from './definitions.ts'
import type { Example } from './example.ts'
import { EXPRESSIONS } from './expressions.ts'
import { JOINS } from './joins.ts'
import { JSON_VALUES } from './json.ts'
import { LITERALS } from './literals.ts'
import { MERGE } from './merge.ts'
import { NESTS } from './nests.ts'
import { PARAMETERS } from './parameters.ts'
import { READS } from './reads.ts'
import { SEARCH } from './search.ts'
import { WINDOWS } from './windows.ts'
import { WRITES } from './writes.ts'

export { CONSTRUCTS } from './constructs.ts'
export type { Example } from './example.ts'
export { GRAMMAR } from './grammar.ts'
export { INVALID } from './invalid.ts'
export { CORPUS_SCHEMA } from './schema.ts'

export const EXAMPLES: readonly Example[] = [
  ...READS,
  ...CONDITIONS,
  ...SEARCH,
  ...PARAMETERS,
  ...LITERALS,
  ...EXPRESSIONS,
  ...JSON_VALUES,
  ...JOINS,
  ...NESTS,
  ...AGGREGATES,
  ...WINDOWS,
  ...COMPOUNDS,
  ...COMMON_TABLES,
  ...WRITES,
  ...MERGE,
  ...DEFINITIONS,
  ...COMMANDS,
]
