/** Schemas shared by several operations that belong to no table or function. */
import { ERROR_SCHEMAS } from './errors.ts'
import { FILTER_SCHEMAS } from './filters.ts'
import type { SchemaObject } from './model.ts'
import { COUNT, envelope } from './responses.ts'

/** The schema of a row whose columns are unknown. */
export const ANY_ROW: SchemaObject = { type: 'object', additionalProperties: true }

/** The members of a page beside its rows. */
const PAGE: SchemaObject = {
  type: 'object',
  properties: {
    count: { ...COUNT, description: 'Rows in this response.' },
    limit: { type: 'integer', format: 'int64', description: 'The limit in force.', minimum: 0 },
    offset: { type: 'integer', format: 'int64', minimum: 0 },
    next_cursor: { type: 'string', nullable: true, description: 'For the next page; null on the last.' },
    total: { type: 'integer', format: 'int64', description: 'Rows on all pages, if `count=exact` was preferred.' },
  },
  required: ['count', 'limit', 'offset', 'next_cursor'],
}

const BINARY: SchemaObject = {
  ...envelope(
    {
      data: { description: 'As without `x-svc-result-format: binary`, each value as the base64 of its binary form.' },
      function: { type: 'string' },
      result_format: { type: 'string', enum: ['binary'] },
      count: COUNT,
      columns: {
        type: 'array',
        items: envelope({
          name: { type: 'string' },
          type: { type: 'string' },
          oid: { type: 'integer', format: 'int64' },
        }),
      },
    },
    ['data', 'function', 'result_format', 'columns'],
  ),
}

/** The schemas that do not depend on tables. */
export const SHARED_SCHEMAS: readonly (readonly [string, SchemaObject])[] = [
  ['svc-binary', BINARY],
  ['svc-page', PAGE],
  ['svc-row', ANY_ROW],
  ...FILTER_SCHEMAS,
  ...ERROR_SCHEMAS,
]
