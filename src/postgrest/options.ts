/** Answers OPTIONS: the methods that a resource accepts. */
import type { View } from '../access/rights.ts'
import { resourceName, type Table } from '../catalog/model.ts'
import type { Answer } from '../exchange.ts'
import { tableIn } from './names.ts'
import type { RawDoorRequest } from './request.ts'

/**
 * The response to an OPTIONS request.
 * @throws {PostgrestError} `PGRST205` for a table that does not exist.
 */
export function respondOptions({ resource, schema }: RawDoorRequest, view: View): Answer {
  switch (resource.kind) {
    case 'root':
      return allowing(['OPTIONS', 'GET', 'HEAD'])
    case 'table':
      return allowing(methodsOf(tableIn(schema, resource.name, view)))
    case 'function': {
      const { catalog } = view
      const overloads = catalog.functions.get(resourceName({ schema, name: resource.name }, catalog.schemas)) ?? []
      const isVolatile = overloads.every(({ volatility }) => volatility === 'volatile')
      return allowing(isVolatile ? ['OPTIONS', 'POST'] : ['OPTIONS', 'GET', 'HEAD', 'POST'])
    }
  }
}

function methodsOf({ writable, primaryKey }: Table): readonly string[] {
  const { insert, update, delete: remove } = writable
  return [
    ...['OPTIONS', 'GET', 'HEAD'],
    ...(insert ? ['POST'] : []),
    ...(insert && update && primaryKey.length > 0 ? ['PUT'] : []),
    ...(update ? ['PATCH'] : []),
    ...(remove ? ['DELETE'] : []),
  ]
}

function allowing(methods: readonly string[]): Answer {
  return { status: 200, headers: { Allow: methods.join(','), 'Access-Control-Allow-Origin': '*' }, body: null }
}
