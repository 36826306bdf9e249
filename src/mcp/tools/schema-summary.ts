/** The tool that reads a schema document. */
import { LanguageError } from '../../language/tree/error.ts'
import { parseSchema } from '../../schema/parse.ts'
import { type SchemaSummary, summarize } from '../../schema/summary.ts'
import { required } from '../arguments.ts'
import { resultOrLesson } from '../lesson.ts'
import { arrayOf, OBJECT, outcome, record, STRING_SCHEMA } from '../schema.ts'
import { defineTool, type Tool } from '../tool.ts'

/** An example shown with an error; it contains the most common parts of a document. */
export const SCHEMA_EXAMPLE = `enum status { draft, paid }
table orders {
  id int8 primary_key
  tenant_id uuid not_null
  customer_id int8 references customers (id)
  status status default 'draft'
  enable_rls
  force_rls
}
table customers { id int8 primary_key, name text not_null }
index orders_by_customer on orders (customer_id)
policy own on orders using $$ tenant_id = current_setting('app.current_tenant_id')::uuid $$`

const OBJECTS = arrayOf(OBJECT)

/** The tool that summarizes a schema. */
export const schemaSummary: Tool = defineTool({
  name: 'svc_schema_summary',
  title: 'Summarize a schema document',
  description:
    'Parses a schema document (svc schema pull prints that of a database) into tables, columns, enums, indexes ' +
    'and policies, with warnings about likely mistakes, such as tenant tables without row-level security.',
  arguments: { schema: required('A schema document, e.g. table users { id int8 primary_key, name text not_null }') },
  output: outcome({
    tables: arrayOf({
      ...OBJECT,
      properties: { name: STRING_SCHEMA, columns: OBJECTS },
      required: ['name', 'columns'],
    }),
    enums: OBJECTS,
    domains: OBJECTS,
    indexes: OBJECTS,
    policies: OBJECTS,
    views: OBJECTS,
    functions: OBJECTS,
    extensions: arrayOf(STRING_SCHEMA),
    warnings: arrayOf(record({ code: STRING_SCHEMA, message: STRING_SCHEMA, span: OBJECT })),
  }),
  run: ({ schema }) =>
    resultOrLesson(
      schema,
      () => SCHEMA_EXAMPLE,
      () => assertShort(summarize(parseSchema(schema))),
    ),
})

/**
 * Limit on labels in a response. Each column of an enum lists its labels, so a document of 128 KiB could
 * otherwise cause a response of hundreds of megabytes.
 */
export const LABELS_MAX = 20_000

function assertShort(summary: SchemaSummary): SchemaSummary {
  let labels = 0
  for (const { columns } of summary.tables) for (const column of columns) labels += column.enum?.length ?? 0
  if (labels <= LABELS_MAX) return summary
  throw new LanguageError(
    `the columns have ${labels} enum labels in total; a summary lists at most ${LABELS_MAX}, ` +
      'so pass fewer tables at a time',
  )
}
