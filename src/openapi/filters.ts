/** Filters (docs/reference/reading.md#filters) as parameters: both styles, each documented once. */
import type { Column } from '../catalog/model.ts'
import { GROUP_PARAMETERS } from '../rest/parameters/filter-notation.ts'
import { OPERAND_OF, operatorNamed } from '../rest/parameters/operators.ts'
import { AGGREGATE_PARAMETERS, LIST_PARAMETERS } from '../rest/request.ts'
import { HEADER_PARAMETERS } from './headers.ts'
import { distinctBy, identifierOf, inQuotes, keyOf } from './keys.ts'
import { type Parameter, parameterRef, printReference, type ReferenceList, type Schema, schemaRef } from './model.ts'

const OPERATORS = Object.keys(OPERAND_OF)

export const FILTER_SCHEMAS: readonly (readonly [string, Schema])[] = [
  [
    'svc-filter',
    {
      type: 'string',
      description: `A value to be equal to, or \`<operator>.<value>\`: \`gte.18\`, \`in.(a,b)\`, \`is_null\`, \`not.like.*x*\`. Operators: ${OPERATORS.join(', ')}.`,
    },
  ],
  [
    'svc-filters',
    {
      type: 'object',
      additionalProperties: { type: 'string' },
      example: {},
    },
  ],
]

/** The style that has the operator in the name, where a value is taken word for word; and trees of conditions, and paths into JSON. */
const FILTER_PARAMETERS: readonly (readonly [string, Parameter])[] = [
  [
    'filters',
    {
      name: 'filters',
      in: 'query',
      description: [
        'Conditions by `<column>.<operator>=<value>`, each a parameter of its own: `total.gte=100&status.in=paid,shipped&name.eq=in.x`. The value is taken word for word.',
        'Also groups, `or=(status.eq.paid,and(total.gt.10,total.lt.20))`, and paths into JSON, `meta->>theme=dark`.',
      ].join('\n\n'),
      style: 'form',
      explode: true,
      schema: schemaRef('svc-filters'),
    },
  ],
]

/** Identifiers of the parameters of any route that are not filters. */
const RESERVED: ReadonlySet<string> = new Set(
  [
    ...[...LIST_PARAMETERS, ...AGGREGATE_PARAMETERS, ...GROUP_PARAMETERS, ...HEADER_PARAMETERS],
    ...['returning', 'filters'],
  ].map(identifierOf),
)

/** What the path of a request names: a table, or a row of another one by `{id}`. */
export type PathForm = 'table' | 'row'

const TAKEN: Readonly<Record<PathForm, ReadonlySet<string>>> = { table: RESERVED, row: new Set([...RESERVED, 'id']) }

/** The column's name as a parameter that nothing else could be meant by. */
function filterName(column: string): string {
  const endsInOperator = operatorNamed(column.slice(column.lastIndexOf('.') + 1)) !== undefined && column.includes('.')
  return endsInOperator || /->|"/.test(column) ? inQuotes(column) : column
}

type Entry = readonly [string, Parameter]

/** A parameter for each column that is not called like another parameter: those are filtered by `filters`, as in `limit.eq`. */
export function filterParameters(columns: readonly Column[]): readonly Parameter[] {
  return distinctBy(columns, ({ name }) => name, RESERVED).map(({ name }) => filterParameter(name))
}

function filterParameter(column: string): Parameter {
  return {
    ...{ name: filterName(column), in: 'query' },
    schema: schemaRef('svc-filter'),
  }
}

/** The filters of a document: columns of one name share a parameter, whatever tables they are of. */
export interface SharedFilters {
  /** What an operation that takes filters on these columns refers to. They are told apart already. */
  references(columns: readonly Column[], path: PathForm): ReferenceList
  /** What has been referred to. */
  parameters(): readonly Entry[]
}

export function createSharedFilters(): SharedFilters {
  const byColumn = new Map<string, { readonly printed: string; readonly isTaken: IsTaken; readonly entry: Entry }>()

  function filterOn({ name }: Column) {
    const known = byColumn.get(name)
    if (known !== undefined) return known
    const key = `filter-${keyOf(name)}`
    const identifier = identifierOf(name)
    const made = {
      printed: printReference(parameterRef(key)),
      isTaken: { table: TAKEN.table.has(identifier), row: TAKEN.row.has(identifier) },
      entry: [key, filterParameter(name)] as const,
    }
    byColumn.set(name, made)
    return made
  }

  return {
    references(columns, path) {
      const own = columns.map(filterOn).filter(({ isTaken }) => !isTaken[path])
      return { list: [...own.map(({ printed }) => printed), OTHER_FILTERS].join(',') }
    },
    parameters: () => [...FILTER_PARAMETERS, ...Array.from(byColumn.values(), ({ entry }) => entry)],
  }
}

type IsTaken = Readonly<Record<PathForm, boolean>>

const OTHER_FILTERS = printReference(parameterRef('filters'))
