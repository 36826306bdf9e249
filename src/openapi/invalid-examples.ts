/**
 * Declared examples that are invalid and therefore not used in the document, with the statement that removes
 * each; for `svc check`.
 */
import type { Catalog, DatabaseFunction } from '../catalog/model.ts'
import { quoteFunctionOrType, quoteIdentifier, quoteLiteral, quoteQualifier } from '../language/sql/quote.ts'
import { readExample } from './declared-examples.ts'
import { readCall } from './example-call.ts'
import { valueSchema } from './types.ts'

/** An invalid example. */
export interface InvalidDeclaredExample {
  /** The declaration and the reason why it is invalid: `orders.total (12,50 is not a numeric …)`. */
  readonly object: string
  /** Removes it and keeps the rest of the comment. */
  readonly sql: readonly string[]
}

/** Finds all invalid examples of a catalog. */
export function invalidExamples({ tables, functions }: Catalog): readonly InvalidDeclaredExample[] {
  const ofColumns = [...tables.values()].flatMap(({ schema, name, resource, columns }) =>
    columns.flatMap(column => {
      if (column.example === null) return []
      const declared = readExample(column.example, column, valueSchema(column.type, column.typeText))
      if (declared.kind === 'value') return []
      const target = [schema, name, column.name].map(quoteIdentifier).join('.')
      return invalidExample(`${resource}.${column.name}`, declared.why, `column ${target}`, column.comment)
    }),
  )
  const ofFunctions = [...functions.values()].flat().flatMap(of => {
    if (of.example === null) return []
    const call = readCall(of.example, of)
    if (call.kind === 'value') return []
    return invalidExample(`${of.resource}(${of.identityArgs})`, call.why, `function ${signatureOf(of)}`, of.comment)
  })
  return [...ofColumns, ...ofFunctions]
}

function signatureOf({ schema, name, identityArgs }: DatabaseFunction): string {
  return `${quoteQualifier(schema)}.${quoteFunctionOrType(name)}(${identityArgs})`
}

function invalidExample(
  object: string,
  why: string,
  target: string,
  comment: string | null,
): readonly InvalidDeclaredExample[] {
  const words = comment === null ? 'null' : quoteLiteral(comment)
  return [{ object: `${object} (${why})`, sql: [`comment on ${target} is ${words};`] }]
}
