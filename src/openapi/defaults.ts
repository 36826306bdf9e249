/**
 * The default of a column as a JSON value, if its expression is a constant: `'draft'::order_status`, `0`,
 * `'{}'::jsonb`.
 */
import { isJson } from '../access/types.ts'
import type { Column } from '../catalog/model.ts'
import type { SchemaObject } from './model.ts'

/**
 * Undefined for everything that only PostgreSQL can compute, and for numbers with more digits than JavaScript
 * preserves.
 */
export function constantDefault({ default: text, type }: Column, schema: SchemaObject): unknown {
  if (text === null) return undefined
  const constant = readConstant(text)
  if (constant === undefined) return undefined
  switch (schema.type) {
    case 'boolean':
      return constant === 'true' ? true : constant === 'false' ? false : undefined
    case 'integer':
    case 'number':
      return String(Number(constant)) === constant ? Number(constant) : undefined
    case 'array':
      return constant === '{}' ? [] : undefined
    case 'string':
      return isQuoted(text) ? constant : undefined
    default:
      return isJson(type) ? parsed(constant) : undefined
  }
}

/**
 * Parses `'…'::type`, a number or a Boolean, possibly in parentheses with a cast; PostgreSQL prints no other
 * constants (ruleutils.c).
 */
function readConstant(text: string): string | undefined {
  const quoted = QUOTED.exec(text)?.[1]
  if (quoted !== undefined) return quoted.replaceAll("''", "'")
  return BARE.exec(text)?.[1]
}

const CAST = '(?:::[a-zA-Z_][\\w. "]*(?:\\(\\d+(?:,\\d+)?\\))?(?:\\[\\])*)?'
const QUOTED = new RegExp(`^'((?:[^']|'')*)'${CAST}$`)
const BARE = new RegExp(`^\\(?(-?\\d+(?:\\.\\d+)?|true|false)\\)?${CAST}$`)

function isQuoted(text: string): boolean {
  return QUOTED.test(text)
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
