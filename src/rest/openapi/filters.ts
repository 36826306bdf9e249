/** Filters as parameters: both styles, each documented once (specification 4.2, 4.3; decisions 3). */
import type { Column } from '../../catalog/model.ts'
import { GROUP_PARAMETERS } from '../filter-notation.ts'
import { OPERAND_OF, operatorNamed } from '../operators.ts'
import { AGGREGATE_PARAMETERS } from '../read/aggregate.ts'
import { LIST_PARAMETERS } from '../read/request.ts'
import { inQuotes, keyOf } from './keys.ts'
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

/** Parameters that are no filters, of any route: a column of such a name is written in quotes. */
const RESERVED: ReadonlySet<string> = new Set([
  ...LIST_PARAMETERS,
  ...AGGREGATE_PARAMETERS,
  ...GROUP_PARAMETERS,
  ...['returning', 'filters'],
])

/** The column's name as a parameter that nothing else could be meant by. */
function filterName(column: string): string {
  const endsInOperator = operatorNamed(column.slice(column.lastIndexOf('.') + 1)) !== undefined && column.includes('.')
  return RESERVED.has(column) || endsInOperator || /->|"/.test(column) ? inQuotes(column) : column
}

type Entry = readonly [string, Parameter]

/** A parameter for each column. */
export function filterParameters(columns: readonly Column[]): readonly Parameter[] {
  return columns.map(({ name }) => filterParameter(name))
}

function filterParameter(column: string): Parameter {
  return {
    ...{ name: filterName(column), in: 'query', description: `Filter on \`${column}\`.` },
    schema: schemaRef('svc-filter'),
  }
}

/** The filters of a document: columns of one name share a parameter, whatever tables they are of. */
export interface SharedFilters {
  /** What an operation that takes filters on these columns refers to. */
  references(columns: readonly Column[]): ReferenceList
  /** What has been referred to. */
  parameters(): readonly Entry[]
}

export function createSharedFilters(): SharedFilters {
  const byColumn = new Map<string, { readonly printed: string; readonly entry: Entry }>()

  function reference({ name }: Column): string {
    const known = byColumn.get(name)
    if (known !== undefined) return known.printed
    const key = `filter-${keyOf(name)}`
    const printed = printReference(parameterRef(key))
    byColumn.set(name, { printed, entry: [key, filterParameter(name)] })
    return printed
  }

  return {
    references: columns => ({ list: [...columns.map(reference), OTHER_FILTERS].join(',') }),
    parameters: () => [...FILTER_PARAMETERS, ...Array.from(byColumn.values(), ({ entry }) => entry)],
  }
}

const OTHER_FILTERS = printReference(parameterRef('filters'))
