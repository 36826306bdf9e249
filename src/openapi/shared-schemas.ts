/** Schemas shared by several operations that belong to no table or function. */

import { PATCH_OPERATIONS, PATCH_OPERATIONS_MAX } from '../rest/write/changes.ts'
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

/** The response of an import (docs/reference/import.md#response). */
const IMPORT_REPORT: SchemaObject = envelope({
  count: { ...COUNT, description: 'Rows written.' },
  errors: {
    type: 'array',
    description: 'The rows left out, with `on-error=continue`.',
    items: envelope({
      line: { type: 'integer', description: 'The line on which the record begins.' },
      column: { type: 'string', nullable: true },
      message: { type: 'string' },
    }),
  },
})

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

/** A component, so that each column that it can change has the same class in a generated client. */
const INCREMENT: SchemaObject = {
  ...envelope({ $inc: { type: 'number', description: 'What is added to the number; negative to subtract.' } }),
  additionalProperties: false,
}

/** A JSON Patch (RFC 6902), whose document is the row. */
const PATCH: SchemaObject = {
  type: 'array',
  minItems: 1,
  maxItems: PATCH_OPERATIONS_MAX,
  items: envelope(
    {
      op: { type: 'string', enum: [...PATCH_OPERATIONS.keys()] },
      path: { type: 'string', pattern: '^/', description: 'Begins with a column: `/attributes/color`.' },
      from: { type: 'string', pattern: '^/', description: 'For `move` and `copy`.' },
      value: { description: 'For `add`, `replace` and `test`.' },
    },
    ['op', 'path'],
  ),
}

/** The schemas that do not depend on tables. */
export const SHARED_SCHEMAS: readonly (readonly [string, SchemaObject])[] = [
  ['svc-binary', BINARY],
  ['svc-import-report', IMPORT_REPORT],
  ['svc-increment', INCREMENT],
  ['svc-page', PAGE],
  ['svc-patch', PATCH],
  ['svc-row', ANY_ROW],
  ...FILTER_SCHEMAS,
  ...ERROR_SCHEMAS,
]
