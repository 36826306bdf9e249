/**
 * Prints functions as messages show them: `top_products(since date default '2025-01-01'::date, top integer
 * default 10)`.
 */
import type { DatabaseFunction, FunctionInput } from '../../catalog/model.ts'

/** Limit on the overloads and on the arguments of each that are shown. */
const SIGNATURES_SHOWN = 10
const SIGNATURE_CHARACTERS_MAX = 500

/** Prints the signatures of overloads, joined with "or". */
export function printSignatures(functions: readonly DatabaseFunction[], name: string): string {
  const shown = functions.slice(0, SIGNATURES_SHOWN).map(of => printSignature(of, name))
  const more = functions.length - shown.length
  return `${shown.join(' or ')}${more === 0 ? '' : ` or ${more} more, which GET /api/_rpc/contracts lists`}`
}

/** Prints the signature of a function. */
export function printSignature(of: DatabaseFunction, name: string): string {
  const signature = `${name}(${of.inputs.map(printInput).join(', ')})`
  return signature.length <= SIGNATURE_CHARACTERS_MAX ? signature : `${signature.slice(0, SIGNATURE_CHARACTERS_MAX)}…)`
}

function printInput({ name, typeText, mode, default: value }: FunctionInput): string {
  const words = [mode === 'variadic' ? 'variadic' : '', name ?? '', typeText, value === null ? '' : `default ${value}`]
  return words.filter(word => word !== '').join(' ')
}

/** The name of an argument in messages, or its position if it has no name. */
export function printArgument({ name, position }: FunctionInput): string {
  return name === null ? `argument ${position}` : `argument "${name}"`
}
