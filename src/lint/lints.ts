/** All lints, in the order in which they are reported: fixing an earlier one may fix a later one too. */
import { GRANT_LINTS } from './grants.ts'
import { KEY_LINTS } from './keys.ts'
import type { Lint } from './lint.ts'
import { POLICY_LINTS } from './policies.ts'
import { ROUTINE_LINTS } from './routines.ts'
import { SERVER_LINTS } from './server.ts'
import { TABLE_LINTS } from './tables.ts'

/** By the heading under which the reference lists them. */
export const LINT_SECTIONS: Readonly<Record<string, readonly Lint[]>> = {
  'Server and role': SERVER_LINTS,
  'Tables and views': TABLE_LINTS,
  Policies: POLICY_LINTS,
  Rights: GRANT_LINTS,
  Functions: ROUTINE_LINTS,
  'Keys and indexes': KEY_LINTS,
}

export const LINTS: readonly Lint[] = Object.values(LINT_SECTIONS).flat()
