/** Filters (docs/reference/reading.md#filters) as parameters: both styles, each documented once. */
import type { Column } from '../catalog/model.ts'
import { GROUP_PARAMETERS } from '../rest/parameters/filter-notation.ts'
import { OPERAND_OF, operatorNamed } from '../rest/parameters/operators.ts'
import { AGGREGATE_PARAMETERS, LIST_PARAMETERS } from '../rest/request.ts'
import { HEADER_PARAMETERS } from './headers.ts'
import { componentKey, distinctBy, identifierOf, inQuotes } from './keys.ts'
import {
  type ParameterObject,
  parameterRef,
  printReferenceObject,
  type ReferenceList,
  type SchemaObject,
  schemaRef,
} from './model.ts'

const OPERATORS = Object.keys(OPERAND_OF)

/** The schemas of filter operands. */
export const FILTER_SCHEMAS: readonly (readonly [string, SchemaObject])[] = [
  [
    'svc-filter',
    {
      type: 'string',
      description:
        `A value to compare with for equality, or \`<operator>.<value>\`: \`gte.18\`, \`in.(a,b)\`, ` +
        `\`is_null\`, \`not.like.*x*\`. Operators: ${OPERATORS.join(', ')}.`,
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

/**
 * The style with the operator in the name, whose value is taken literally; and groups of conditions, and
 * paths into JSON.
 */
const FILTER_PARAMETERS: readonly (readonly [string, ParameterObject])[] = [
  [
    'filters',
    {
      name: 'filters',
      in: 'query',
      description: [
        'Conditions `<column>.<operator>=<value>`, one parameter each: ' +
          '`total.gte=100&status.in=paid,shipped&name.eq=in.x`. The value is taken literally.',
        'Also groups, `or=(status.eq.paid,and(total.gt.10,total.lt.20))`, and paths into JSON, `meta->>theme=dark`.',
      ].join('\n\n'),
      style: 'form',
      explode: true,
      schema: schemaRef('svc-filters'),
    },
  ],
]

/** Names of parameters of any route that are not filters. */
const RESERVED: ReadonlySet<string> = new Set(
  [
    ...[...LIST_PARAMETERS, ...AGGREGATE_PARAMETERS, ...GROUP_PARAMETERS, ...HEADER_PARAMETERS],
    ...['returning', 'filters'],
  ].map(identifierOf),
)

/** A column's name as a parameter that cannot mean anything else. */
function filterName(column: string): string {
  const endsInOperator = operatorNamed(column.slice(column.lastIndexOf('.') + 1)) !== undefined && column.includes('.')
  return endsInOperator || /->|"/.test(column) ? inQuotes(column) : column
}

type Entry = readonly [string, ParameterObject]

/**
 * A parameter for each column whose name is not that of another parameter; those are filtered by `filters`,
 * as in `limit.eq`.
 */
export function filterParameterObjects(columns: readonly Column[]): readonly ParameterObject[] {
  return distinctBy(columns, ({ name }) => name, RESERVED).map(({ name }) => filterParameter(name))
}

function filterParameter(column: string): ParameterObject {
  return {
    ...{ name: filterName(column), in: 'query' },
    schema: schemaRef('svc-filter'),
  }
}

/** The filter parameters of a document: columns with the same name share a parameter across tables. */
export interface SharedFilters {
  /** References for an operation with filters on these columns, which must already be distinct. */
  references(columns: readonly Column[]): ReferenceList
  /** The parameters that have been referenced. */
  parameters(): readonly Entry[]
}

/** Creates an empty collection. */
export function createSharedFilters(): SharedFilters {
  const byColumn = new Map<string, { readonly printed: string; readonly isTaken: boolean; readonly entry: Entry }>()

  function filterOn({ name }: Column) {
    const known = byColumn.get(name)
    if (known !== undefined) return known
    const key = `by-${componentKey(name)}`
    const made = {
      printed: printReferenceObject(parameterRef(key)),
      isTaken: RESERVED.has(identifierOf(name)),
      entry: [key, filterParameter(name)] as const,
    }
    byColumn.set(name, made)
    return made
  }

  return {
    references(columns) {
      const own = columns.map(filterOn).filter(({ isTaken }) => !isTaken)
      return { list: [...own.map(({ printed }) => printed), OTHER_FILTERS].join(',') }
    },
    parameters: () => [...FILTER_PARAMETERS, ...Array.from(byColumn.values(), ({ entry }) => entry)],
  }
}

const OTHER_FILTERS = printReferenceObject(parameterRef('filters'))
