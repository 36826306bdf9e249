/** Formats productions and examples as Markdown, for the reference and for tools. */

import type { Production, QueryExample } from './corpus.ts'

/** A production in EBNF, after a comment with its explanation. */
export function printEbnf({ name, text, explanation }: Production): string {
  return `(* ${explanation} *)\n${name} = ${text} ;`
}

/** A production as a code block. */
export function printProduction(production: Production): string {
  return block('ebnf', printEbnf(production))
}

/** An example: its note, the query and the SQL. */
export function printExample({ query, sql, note }: Pick<QueryExample, 'query' | 'sql' | 'note'>): string {
  return `${note}\n\n${block('svc', query)}\n\n${block('sql', sql)}`
}

/** A fenced code block, with more backticks than the text has in a row. */
export function block(language: string, text: string): string {
  let longest = 2
  for (const [marks] of text.matchAll(/`+/g)) longest = Math.max(longest, marks.length)
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}
