/** Prompts: the beginnings of conversations in which the tools are put to use. */
import type { GetPromptResult, Prompt as Listed } from '@modelcontextprotocol/sdk/spec.types.js'
import type { Corpus } from '../corpus/corpus.ts'
import { block } from '../corpus/markdown.ts'
import { answerParse } from '../language/hints/answer.ts'
import { parse } from '../language/syntax/parse.ts'
import { parseSchema } from '../schema/parse.ts'
import { summarize } from '../schema/summary.ts'
import { type ArgumentTable, type ArgumentValues, optional, readToolArguments, required } from './arguments.ts'
import { lookUpConstruct } from './constructs.ts'
import { exampleFor, type Lesson, resultOrLesson } from './lesson.ts'
import { cardOf } from './tools/language.ts'
import { SCHEMA_EXAMPLE } from './tools/schema-summary.ts'

/** A prompt with its arguments. */
export interface Prompt {
  readonly listed: Listed
  readonly arguments: readonly string[]
  /** Throws an `RpcError` that names the argument. */
  get(given: unknown, corpus: Corpus): GetPromptResult
}

const RULES = `svc's query language is not SQL: the verb comes first (get, count, add, set, del, merge), then the \
table, then the clauses, each once and in order.
Look a construct up with svc_syntax and svc_examples before you use it, and check every query with svc_parse_query: \
a query with ok true is valid, otherwise the error gives the position and what to write.
Values that come from outside are parameters ($1 or :name), never part of the text.`

const writeQuery = definePrompt({
  name: 'write_query',
  title: 'Write a query',
  description: 'Write a query for a task, checked with the tools.',
  arguments: {
    task: required('What the query should do, in words'),
    construct: optional('A construct to begin with, e.g. nest', 40),
    schema: optional('A schema document with the available tables', 100_000),
  },
  print({ task, construct, schema }, corpus) {
    const card =
      construct === null
        ? []
        : [`The grammar of "${construct}":`, json(cardOf(lookUpConstruct(construct, corpus), corpus))]
    const tables = schema === null ? [] : ['The available tables:', block('text', schema)]
    return [`Write a query in svc's query language for this task: ${task}`, RULES, ...card, ...tables]
  },
})

const fixQuery = definePrompt({
  name: 'fix_query',
  title: 'Correct a query',
  description: 'Correct a query that is rejected, starting from the message of the parser.',
  arguments: { query: required('The query in its current form') },
  print({ query }, corpus) {
    const answer = resultOrLesson(query, exampleFor(query, corpus), () => answerParse(parse(query), 'all'))
    const verdict = isLesson(answer)
      ? ['The parser refuses it:', json(answer.error)]
      : ['The parser takes it. Its SQL:', block('sql', answer.sql), 'Say whether it does what it seems to be for.']
    return ['Correct this query:', block('svc', query), ...verdict, RULES]
  },
})

const reviewSchema = definePrompt({
  name: 'review_schema',
  title: 'Review a schema',
  description: 'Review a schema document for what is wrong or dangerous, above all for tenants.',
  arguments: { schema: required('A schema document, as svc schema pull prints it') },
  print({ schema }) {
    const summary = resultOrLesson(
      schema,
      () => SCHEMA_EXAMPLE,
      () => summarize(parseSchema(schema)),
    )
    const findings = isLesson(summary)
      ? ['It cannot be read:', json(summary.error)]
      : ['What the checks found:', json(summary.warnings.map(({ code, message }) => `${code}: ${message}`))]
    return [
      'Review this schema document. Describe what could go wrong, the most serious first, and the fix for ' +
        'each; the most serious is a tenant that can see rows of another.',
      block('text', schema),
      ...findings,
    ]
  },
})

/** All prompts. */
export const PROMPTS: readonly Prompt[] = [writeQuery, fixQuery, reviewSchema]

interface PromptDefinition<T extends ArgumentTable> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly arguments: T
  /** Paragraphs. */
  print(values: ArgumentValues<T>, corpus: Corpus): readonly string[]
}

function definePrompt<const T extends ArgumentTable>(definition: PromptDefinition<T>): Prompt {
  const { name, title, description, arguments: table } = definition
  return {
    listed: {
      ...{ name, title, description },
      arguments: Object.entries(table).map(([argument, { description, ...rest }]) => ({
        ...{ name: argument, description },
        required: 'required' in rest && rest.required,
      })),
    },
    arguments: Object.keys(table),
    get(given, corpus) {
      const text = definition.print(readToolArguments(table, given), corpus).join('\n\n')
      return { description, messages: [{ role: 'user', content: { type: 'text', text } }] }
    },
  }
}

function isLesson(answer: object): answer is Lesson {
  return 'ok' in answer && answer.ok === false
}

function json(value: object): string {
  return block('json', JSON.stringify(value, null, 2))
}
