/**
 * Writes `docs/reference/language.md` from the grammar and the examples. Its test compares the page with the
 * result and rewrites it with `-u`.
 */

import type { Corpus, InvalidQueryExample, QueryExample } from './corpus.ts'
import { printEbnf } from './markdown.ts'

/** Returns the whole page. */
export function printLanguageReference({ constructs, examples, invalid, grammar, notes, schema }: Corpus): string {
  const section = ([construct, title]: [string, string]): string => {
    const rows = examples.filter(example => example.construct === construct).map(row)
    return `### ${title}\n\n| Query | SQL | Note |\n| --- | --- | --- |\n${rows.join('\n')}\n`
  }
  return [
    HEAD,
    `## Grammar\n\n${GRAMMAR_HEAD}\n\n\`\`\`ebnf\n${grammar.map(printEbnf).join('\n')}\n\`\`\`\n`,
    `${notes.map(({ text }) => `- ${text}`).join('\n')}\n`,
    CANONICAL,
    EXAMPLES_HEAD,
    ...Object.entries(constructs).map(section),
    `## Errors\n\n${ERRORS_HEAD}\n`,
    `| Text | Note | Error | Position |\n| --- | --- | --- | --- |\n${invalid.map(invalidRow).join('\n')}\n`,
    `## Tables of the examples\n\n\`\`\`sql\n${schema.trim()}\n\`\`\`\n`,
  ].join('\n')
}

const GENERATED =
  '<!-- Written from corpus/ by `npx vitest run src/corpus/reference.test.ts -u`; ' +
  'edit the files there, not this page. -->'

const INTRODUCTION =
  'A language for reading and writing PostgreSQL. ' +
  '[The guide](../guides/query-language.md) introduces it step by step. The same texts are accepted'

const TYPESCRIPT =
  'in TypeScript, by `svc-gateway/language`, which needs neither Node.js nor a database: ' +
  '`parse`, `printSql`, and a builder for the same tree.'

const BODY =
  '{"query": "get orders fields number where status = :status order by id limit 2", ' +
  '"parameters": {"status": "paid"}}'

const WRITTEN = '200 `{"data": [row…], "count"}`: `returning`, and the number of written rows'

const TRANSACTION =
  "Each query is one transaction under the caller's session settings, like every request. " +
  "Row-level security, the privileges of the gateway's role and access policies apply."

const CHECKED_NAMES =
  'Names are checked against the schema before anything runs. ' +
  'The error for an unknown name suggests the most similar one.'

const UNIQUE_NAMES =
  'Names in a row are unique. Of several columns with the same name, the first keeps its name, ' +
  'and the others are prefixed with their source, `posts.id`. ' +
  'Other fields with the same name are an error; rename them with `as`.'

const HEAD = `# The query language

${GENERATED}

${INTRODUCTION}

- over HTTP, by \`POST /api/_query\` (below);
- on the [command line](cli.md): \`svc parse\` prints the tree, \`svc format\` the canonical form, \`svc transpile\`
  the SQL, \`svc explain\` a description; each accepts a file or standard input, with \`;\` between statements;
- ${TYPESCRIPT}

## Over HTTP

\`$URL\` and \`send\` are the [shell functions](../guides/quick-start.md#shell-functions) of the quick start.
The body is the text with its parameters, or with \`Content-Type: text/plain\` the text alone.

\`\`\`sh
send POST /api/_query -d '${BODY}'
\`\`\`

| Statement | Response |
| --- | --- |
| \`get\`, \`count\` | 200 \`{"data": [row…], "count"}\`, at most \`max_result_rows\` rows |
| \`export\` | 200, \`application/x-ndjson\`, one row per line |
| \`add\`, \`set\`, \`del\`, a write in \`with\` | ${WRITTEN} |
| \`explain\` of these | 200 \`{"data": [plan]}\`, if \`explain_endpoint\` is \`"on"\` |
| anything else | 403 \`FORBIDDEN\` |

- ${TRANSACTION}
- ${CHECKED_NAMES}
- \`parameters\` is an array for \`$1\`, \`$2\`, … or an object for \`:name\` (and \`{"1": …}\` for \`$1\`).
  A parameter has the type of the column that it is compared with; after \`in\` it is an array of that type.
  For a JSON column, its value can be an object or an array.
  Every parameter of the text must have a value, and every value must be used.
- ${UNIQUE_NAMES}
- Functions: those of PostgreSQL that compute a value from their arguments, and those of the database that only read.
- \`@@\` searches in \`search_language\`. Joins and nests without \`on\` follow the foreign keys of the database.
- A text with an error is answered with 400 \`PARSE_ERROR\`; \`details\` has \`line\`, \`column\`, \`found\`,
  \`expected\` and \`source\`, the line with the error.
`

const GRAMMAR_HEAD =
  'Text in double quotes is literal, `[ ]` is optional, `{ }` can be repeated or omitted, ' +
  '`|` separates alternatives.'

const CANONICAL = `## Canonical form

\`svc format\` writes each clause on its own line, and indents joins and nests below the source.
A list is on one line if it fits in 80 columns; otherwise each item has its own line.
It uses single quotes and the short keywords (\`add\`, \`set\`, \`del\`), omits \`asc\`, and writes \`left join\` for
\`join\`. Formatting the result again changes nothing.

\`\`\`
get users
  left join posts on users.id = posts.user_id
fields users.id, posts.title
where active = true and (role = 'admin' or role = 'owner')
order by posts.created_at desc
limit 10
\`\`\`
`

const EXAMPLES_HEAD =
  '## Examples\n\n' +
  'The tests parse, format and print each example, and have PostgreSQL prepare it, ' +
  'with [these tables](#tables-of-the-examples). The SQL is the output of `svc transpile`.\n'

const ERRORS_HEAD =
  'For an invalid text, the response contains one error with its line and column, ' +
  'and if possible what to write instead.'

function row({ query, sql, note }: QueryExample): string {
  return `| ${code(query)} | ${code(sql)} | ${prose(note)} |`
}

function invalidRow({ query, error, line, column, hint, note }: InvalidQueryExample): string {
  const help = hint === undefined ? '' : ` – ${prose(hint)}`
  return `| ${query === '' ? '' : code(query)} | ${prose(note)} | ${prose(error)}${help} | ${line}:${column} |`
}

/** A text as code in a table cell: each line separately, with more backticks than it has in a row. */
function code(text: string): string {
  return text
    .split('\n')
    .map(line => {
      const longest = Math.max(0, ...(line.match(/`+/g) ?? []).map(({ length }) => length))
      const marks = '`'.repeat(longest + 1)
      const padded = line.startsWith('`') || line.endsWith('`') || line.startsWith(' ') ? ` ${line} ` : line
      return `${marks}${padded.replaceAll('|', '\\|')}${marks}`
    })
    .join('<br>')
}

/**
 * A sentence in a table cell, with Markdown's special characters escaped. An underscore inside a word is not
 * special.
 */
function prose(text: string): string {
  return text.replace(/[\\`*[\]<~|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])/g, mark => (mark === '<' ? '&lt;' : `\\${mark}`))
}
