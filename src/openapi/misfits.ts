/** Examples that comments declare and that the document passes over, each with the statement that takes it out: for `svc check`. */
import type { Catalog, DatabaseFunction } from '../catalog/model.ts'
import { quoteFunctionOrType, quoteIdentifier, quoteLiteral, quoteQualifier } from '../language/sql/quote.ts'
import { readExample } from './declared.ts'
import { readCall } from './example-call.ts'
import { valueSchema } from './types.ts'

export interface MisfitExample {
  /** What it is declared for, and why it does not fit: `orders.total (12,50 is no numeric …)`. */
  readonly object: string
  /** The rest of the comment stays. */
  readonly sql: readonly string[]
}

export function misfitExamples({ tables, functions }: Catalog): readonly MisfitExample[] {
  const ofColumns = [...tables.values()].flatMap(({ schema, name, resource, columns }) =>
    columns.flatMap(column => {
      if (column.example === null) return []
      const declared = readExample(column.example, column, valueSchema(column.type, column.typeText))
      if (declared.kind === 'value') return []
      const target = [schema, name, column.name].map(quoteIdentifier).join('.')
      return misfitExample(`${resource}.${column.name}`, declared.why, `column ${target}`, column.comment)
    }),
  )
  const ofFunctions = [...functions.values()].flat().flatMap(of => {
    if (of.example === null) return []
    const call = readCall(of.example, of)
    if (call.kind === 'value') return []
    return misfitExample(`${of.resource}(${of.identityArgs})`, call.why, `function ${signatureOf(of)}`, of.comment)
  })
  return [...ofColumns, ...ofFunctions]
}

function signatureOf({ schema, name, identityArgs }: DatabaseFunction): string {
  return `${quoteQualifier(schema)}.${quoteFunctionOrType(name)}(${identityArgs})`
}

function misfitExample(object: string, why: string, target: string, comment: string | null): readonly MisfitExample[] {
  const words = comment === null ? 'null' : quoteLiteral(comment)
  return [{ object: `${object} (${why})`, sql: [`comment on ${target} is ${words};`] }]
}
