/**
 * The functions that contracts and OpenAPI describe to a caller: those that can be called. A call of another
 * function gets an error that explains why it cannot be called.
 */
import { canSeeResult } from '../../access/columns.ts'
import type { View } from '../../access/rights.ts'
import type { DatabaseFunction } from '../../catalog/model.ts'
import { isAllowed, type NameRules } from './names.ts'
import { isUnsupportedPseudo } from './polymorphic.ts'

/** Reports whether a function is described to the caller. */
export function isDocumented(of: DatabaseFunction, view: View, rules: Pick<NameRules, 'allowed'>): boolean {
  return isAllowed(of, rules) && of.executable && takesJson(of) && canSeeResult(of, view)
}

/** Reports whether a call can pass every required argument as JSON and the result has known columns. */
function takesJson({ inputs, result }: DatabaseFunction): boolean {
  return result.kind !== 'record' && !inputs.some(({ type, required }) => required && isUnsupportedPseudo(type))
}
