/** Filters as parameters: both styles, each documented once (specification 4.2, 4.3; decisions 3). */
import type { Column } from '../../catalog/model.ts'
import { GROUP_PARAMETERS } from '../filter-notation.ts'
import { OPERAND_OF, operatorNamed } from '../operators.ts'
import { AGGREGATE_PARAMETERS } from '../read/aggregate.ts'
import { LIST_PARAMETERS } from '../read/request.ts'
import { inQuotes, keyOf } from './keys.ts'
import { type Parameter, parameterRef, type Reference, type Schema, schemaRef } from './model.ts'

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
export const FILTER_PARAMETERS: readonly (readonly [string, Parameter])[] = [
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

/** A parameter for each column; tables whose columns have one name share it. */
export function filterParameters(columns: readonly Column[]): readonly (readonly [string, Parameter])[] {
  return columns.map(({ name }) => [
    `filter-${keyOf(name)}`,
    { name: filterName(name), in: 'query', description: `Filter on \`${name}\`.`, schema: schemaRef('svc-filter') },
  ])
}

/** What an operation that takes filters on these columns refers to. */
export function filterReferences(columns: readonly Column[]): readonly Reference[] {
  return [...columns.map(({ name }) => parameterRef(`filter-${keyOf(name)}`)), parameterRef('filters')]
}
