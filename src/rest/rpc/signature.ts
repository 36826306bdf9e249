/** Functions as messages show them: `top_products(since date default '2025-01-01'::date, top integer default 10)`. */
import type { DatabaseFunction, FunctionInput } from '../../catalog/model.ts'

/** More overloads, or longer lists of arguments, are not shown whole. */
const SIGNATURES_SHOWN = 10
const SIGNATURE_CHARACTERS_MAX = 500

export function printSignatures(functions: readonly DatabaseFunction[], name: string): string {
  const shown = functions.slice(0, SIGNATURES_SHOWN).map(of => printSignature(of, name))
  const more = functions.length - shown.length
  return `${shown.join(' or ')}${more === 0 ? '' : ` or ${more} more, which GET /api/_rpc/contracts lists`}`
}

export function printSignature(of: DatabaseFunction, name: string): string {
  const signature = `${name}(${of.inputs.map(printInput).join(', ')})`
  return signature.length <= SIGNATURE_CHARACTERS_MAX ? signature : `${signature.slice(0, SIGNATURE_CHARACTERS_MAX)}…)`
}

function printInput({ name, typeText, mode, default: value }: FunctionInput): string {
  const words = [mode === 'variadic' ? 'variadic' : '', name ?? '', typeText, value === null ? '' : `default ${value}`]
  return words.filter(word => word !== '').join(' ')
}

/** An argument as messages name it: by its name, or by its place. */
export function printArgument({ name, position }: FunctionInput): string {
  return name === null ? `argument ${position}` : `argument "${name}"`
}
