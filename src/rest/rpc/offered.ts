/**
 * Which functions are offered to a caller, by the contracts and by OpenAPI: the callable ones. Others can be asked for all the same, and
 * the answer says why not.
 */
import { canSeeResult } from '../../access/columns.ts'
import type { View } from '../../access/rights.ts'
import type { DatabaseFunction } from '../../catalog/model.ts'
import { isAllowed, type NameRules } from './names.ts'
import { isUntold } from './polymorphic.ts'

export function isOffered(of: DatabaseFunction, view: View, rules: Pick<NameRules, 'allowed'>): boolean {
  return isAllowed(of, rules) && of.executable && takesJson(of) && canSeeResult(of, view)
}

/** Whether there is a body to call it with, and an answer to be read. */
function takesJson({ inputs, result }: DatabaseFunction): boolean {
  return result.kind !== 'record' && !inputs.some(({ type, required }) => required && isUntold(type))
}
