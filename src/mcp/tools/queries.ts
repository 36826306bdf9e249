/** Tools that read a query: the real parser, printer, formatter and explanation of the language. */
import type { Corpus } from '../../corpus/corpus.ts'
import { answerExplain, answerFormat, answerParse, answerTranspile } from '../../language/hints/answer.ts'
import type { ParameterMode } from '../../language/sql/printer.ts'
import { parse } from '../../language/syntax/parse.ts'
import { type FlagArgument, required } from '../arguments.ts'
import { exampleFor, resultOrLesson } from '../lesson.ts'
import type { Library } from '../library/library.ts'
import { arrayOf, INTEGER, type JsonSchema, nullable, OBJECT, outcome, record, STRING } from '../schema.ts'
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
      record({ kind: { const: 'literal' }, value: STRING, type: STRING }),
      record({ kind: { const: 'position' }, n: INTEGER }),
      record({ kind: { const: 'name' }, name: STRING }),
    ],
  }),
  description: 'Entry n-1 is the value of $n in the SQL.',
}

const COUNT: JsonSchema = { type: ['integer', 'string', 'null'] }

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
        ast: { ...OBJECT, properties: { kind: STRING }, required: ['kind'] },
        formatted: STRING,
        sql: STRING,
        parameters: PARAMETERS,
      },
      { notes: arrayOf(STRING) },
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
    output: outcome({ sql: STRING, parameters: PARAMETERS }, { notes: arrayOf(STRING) }),
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
      action: STRING,
      table: nullable(STRING),
      columns: arrayOf(STRING),
      joins: arrayOf(record({ type: STRING, table: nullable(STRING), alias: nullable(STRING), on: nullable(STRING) })),
      filters: arrayOf(STRING),
      ordering: arrayOf(
        record({ by: STRING, direction: { enum: ['asc', 'desc'] }, nulls: { enum: ['first', 'last'] } }),
      ),
      limit: COUNT,
      offset: COUNT,
      notes: arrayOf(STRING),
    }),
    run: ({ query }) => resultOrLesson(query, exampleFor(query, corpus), () => answerExplain(parse(query))),
  })

const formatQuery = (corpus: Corpus): Tool =>
  defineTool({
    name: 'svc_format_query',
    title: 'Format a query',
    description: 'Writes a query, or several with ; between them, in canonical form. Comments are preserved.',
    arguments: { query: QUERY },
    output: outcome({ formatted: STRING }),
    run: ({ query }) => resultOrLesson(query, exampleFor(query, corpus), () => answerFormat(query)),
  })

function modeOf(parameterized: boolean): ParameterMode {
  return parameterized ? 'all' : 'keep'
}
