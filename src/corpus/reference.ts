/** `docs/reference/language.md`, written from the grammar and the examples. Its test compares the two, and rewrites the page with `-u`. */

import type { Corpus, Example, InvalidExample } from './corpus.ts'
import { printEbnf } from './markdown.ts'

export function printReference({ constructs, examples, invalid, grammar, notes, schema }: Corpus): string {
  const section = ([construct, title]: [string, string]): string => {
    const rows = examples.filter(example => example.construct === construct).map(row)
    return `### ${title}\n\n| Query | SQL | |\n| --- | --- | --- |\n${rows.join('\n')}\n`
  }
  return [
    HEAD,
    `## Grammar\n\n${GRAMMAR_HEAD}\n\n\`\`\`ebnf\n${grammar.map(printEbnf).join('\n')}\n\`\`\`\n`,
    `${notes.map(({ text }) => `- ${text}`).join('\n')}\n`,
    CANONICAL,
    EXAMPLES_HEAD,
    ...Object.entries(constructs).map(section),
    `## Errors\n\n${ERRORS_HEAD}\n`,
    `| Text | | Error | Place |\n| --- | --- | --- | --- |\n${invalid.map(invalidRow).join('\n')}\n`,
    `## Tables of the examples\n\n\`\`\`sql\n${schema.trim()}\n\`\`\`\n`,
  ].join('\n')
}

const HEAD = `# The query language

<!-- Written from corpus/ by \`npx vitest run src/corpus/reference.test.ts -u\`; edit the files there, not this page. -->

A small language for reading and writing PostgreSQL. [A tutorial](../guides/query-language.md) leads from the first query to the last. The same texts are understood

- over HTTP, by \`POST /api/_query\` (below);
- on the command line: \`svc parse\` prints the tree, \`svc format\` the canonical form, \`svc transpile\` the SQL, \`svc explain\` what it does; each takes a file or standard input, several statements
  with \`;\` between them, and says more with \`--help\`;
- in TypeScript, by \`svc-gateway/language\`, which needs neither Node nor a database: \`parse\`, \`printSql\`, and a builder that makes the same tree.

## Over HTTP

\`$URL\` and \`send\` are the [shell functions](../guides/quick-start.md#shell-functions) of the quick start. The body is the text with its parameters, or with \`Content-Type: text/plain\` the text alone.

\`\`\`sh
send POST /api/_query -d '{"query": "get orders fields number, total where status = :status order by id limit 2", "parameters": {"status": "paid"}}'
\`\`\`

| Statement | Answer |
| --- | --- |
| \`get\`, \`count\` | 200 \`{"data": [row…], "count"}\`, at most \`max_result_rows\` rows |
| \`export\` | 200, \`application/x-ndjson\`, a row a line |
| \`add\`, \`set\`, \`del\`, and reads with a write in \`with\` | 200 \`{"data": [row…], "count"}\`: what \`returning\` says of the rows written, and how many there were |
| \`explain\` of these | 200 \`{"data": [plan]}\`, where \`explain_endpoint\` is \`"on"\` |
| everything else | 403 \`FORBIDDEN\` |

- Each query is one transaction under the caller's settings, as every request is: row-level security decides about rows, the rights of the gateway's role about tables and columns.
- Names are checked against the catalogue before anything runs; an unknown one is answered with the nearest.
- \`parameters\` is an array for \`$1\`, \`$2\`, … or an object for \`:name\` (and \`{"1": …}\` for \`$1\`). A parameter takes the type of the column it meets; behind \`in\` it is an array; an object
  or array is JSON where the column is. Every parameter of the text must have a value, and every value must be used.
- A row has each name once: of columns that are called alike the first keeps its name, and the others have that of their source before it, \`posts.id\`. Any two other fields of one name
  are refused; \`as\` gives them names of their own.
- Functions: PostgreSQL's own that compute something of their arguments, and those of the database that only read.
- \`@@\` searches in \`search_language\`. Joins and nests without \`on\` follow the foreign keys of the database.
- A text that is not understood is 400 \`PARSE_ERROR\`; \`details\` has \`line\`, \`column\`, \`found\`, \`expected\` and \`source\`, the line it stands in.
`

const GRAMMAR_HEAD = `What stands in double quotes is written as it is, \`[ ]\` may be left out, \`{ }\` may come again, \`|\` separates choices.`

const CANONICAL = `## Canonical form

\`svc format\` writes one clause a line, joins and nests indented below the source, a list on one line if it fits in 80 columns and with a line for each item otherwise, single quotes,
the short words (\`add\`, \`set\`, \`del\`), no \`asc\`, and \`left join\` for a bare \`join\`. Formatting it again changes nothing.

\`\`\`
get users
  left join posts on users.id = posts.user_id
fields users.id, posts.title
where active = true and (role = 'admin' or role = 'owner')
order by posts.created_at desc
limit 10
\`\`\`
`

const EXAMPLES_HEAD = `## Examples

Each of these is parsed, formatted, printed and prepared by PostgreSQL in the tests, with [these tables](#tables-of-the-examples). The SQL is what \`svc transpile\` prints.
`

const ERRORS_HEAD = `A text that is refused is answered with one error, its line and column, and where possible with what to write instead.`

function row({ query, sql, note }: Example): string {
  return `| ${code(query)} | ${code(sql)} | ${prose(note)} |`
}

function invalidRow({ query, error, line, column, hint, note }: InvalidExample): string {
  const help = hint === undefined ? '' : ` – ${prose(hint)}`
  return `| ${query === '' ? '' : code(query)} | ${prose(note)} | ${prose(error)}${help} | ${line}:${column} |`
}

/** A text as code in a cell: each line by itself, in more back-ticks than it has in a row. */
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

/** A sentence in a cell, with nothing in it that Markdown would take for a mark; `_` inside of a word is none. */
function prose(text: string): string {
  return text.replace(/[\\`*[\]<~|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])/g, mark => (mark === '<' ? '&lt;' : `\\${mark}`))
}
