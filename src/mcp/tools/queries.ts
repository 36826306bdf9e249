/** Tools that read a query: the real parser, printer, formatter and explanation of the language. */
import type { Corpus } from '../../corpus/corpus.ts'
import { answerExplain, answerFormat, answerParse, answerTranspile } from '../../language/hints/answer.ts'
import type { ParameterMode } from '../../language/sql/printer.ts'
import { parse } from '../../language/syntax/parse.ts'
import { type FlagArgument, required } from '../arguments.ts'
import { exampleFor, resultOrLesson } from '../lesson.ts'
import type { Library } from '../library/library.ts'
import { arrayOf, INTEGER, type JsonSchema, nullableSchema, OBJECT, outcome, record, STRING_SCHEMA } from '../schema.ts'
import { defineTool, type Tool } from '../tool.ts'

const QUERY = required("One statement of svc's query language, e.g. get users where id = $1")

const PARAMETERIZED: FlagArgument = {
  kind: 'flag',
  description:
    'true: literals become parameters too; false: they stay in the SQL, and only $n and :name are parameters.',
  default: true,
}

const PARAMETERS: JsonSchema = {
  ...arrayOf({
    oneOf: [
      record({ kind: { const: 'literal' }, value: STRING_SCHEMA, type: STRING_SCHEMA }),
      record({ kind: { const: 'position' }, n: INTEGER }),
      record({ kind: { const: 'name' }, name: STRING_SCHEMA }),
    ],
  }),
  description: 'Entry n-1 is the value of $n in the SQL.',
}

const COUNT: JsonSchema = { type: ['integer', 'string', 'null'] }

/** The tools that parse and format queries. */
export function queryTools({ corpus }: Library): readonly Tool[] {
  return [parseQuery, transpileQuery, explainQuery, formatQuery].map(tool => tool(corpus))
}

const parseQuery = (corpus: Corpus): Tool =>
  defineTool({
    name: 'svc_parse_query',
    title: 'Parse a query',
    description:
      'Parses a query into its typed tree, its canonical text and its SQL; or returns where it is invalid, what ' +
      'was expected and a correction. Nothing is run, and no table is looked up.',
    arguments: { query: QUERY, parameterized: PARAMETERIZED },
    output: outcome(
      {
        ast: { ...OBJECT, properties: { kind: STRING_SCHEMA }, required: ['kind'] },
        formatted: STRING_SCHEMA,
        sql: STRING_SCHEMA,
        parameters: PARAMETERS,
      },
      { notes: arrayOf(STRING_SCHEMA) },
    ),
    run: ({ query, parameterized }) =>
      resultOrLesson(query, exampleFor(query, corpus), () => answerParse(parse(query), modeOf(parameterized))),
  })

const transpileQuery = (corpus: Corpus): Tool =>
  defineTool({
    name: 'svc_transpile_query',
    title: 'Query to SQL',
    description: 'Turns a query into SQL for PostgreSQL and the list of its parameters, without running it.',
    arguments: { query: QUERY, parameterized: PARAMETERIZED },
    output: outcome({ sql: STRING_SCHEMA, parameters: PARAMETERS }, { notes: arrayOf(STRING_SCHEMA) }),
    run: ({ query, parameterized }) =>
      resultOrLesson(query, exampleFor(query, corpus), () => answerTranspile(parse(query), modeOf(parameterized))),
  })

const explainQuery = (corpus: Corpus): Tool =>
  defineTool({
    name: 'svc_explain_query',
    title: 'Explain a query',
    description:
      'Breaks a query down: action, table, columns, joins, filters, ordering, ' +
      'limit, and notes about what is easily overlooked.',
    arguments: { query: QUERY },
    output: outcome({
      action: STRING_SCHEMA,
      table: nullableSchema(STRING_SCHEMA),
      columns: arrayOf(STRING_SCHEMA),
      joins: arrayOf(
        record({
          type: STRING_SCHEMA,
          table: nullableSchema(STRING_SCHEMA),
          alias: nullableSchema(STRING_SCHEMA),
          on: nullableSchema(STRING_SCHEMA),
        }),
      ),
      filters: arrayOf(STRING_SCHEMA),
      ordering: arrayOf(
        record({ by: STRING_SCHEMA, direction: { enum: ['asc', 'desc'] }, nulls: { enum: ['first', 'last'] } }),
      ),
      limit: COUNT,
      offset: COUNT,
      notes: arrayOf(STRING_SCHEMA),
    }),
    run: ({ query }) => resultOrLesson(query, exampleFor(query, corpus), () => answerExplain(parse(query))),
  })

const formatQuery = (corpus: Corpus): Tool =>
  defineTool({
    name: 'svc_format_query',
    title: 'Format a query',
    description: 'Writes a query, or several with ; between them, in canonical form. Comments are preserved.',
    arguments: { query: QUERY },
    output: outcome({ formatted: STRING_SCHEMA }),
    run: ({ query }) => resultOrLesson(query, exampleFor(query, corpus), () => answerFormat(query)),
  })

function modeOf(parameterized: boolean): ParameterMode {
  return parameterized ? 'all' : 'keep'
}
