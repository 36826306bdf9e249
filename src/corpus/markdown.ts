/** Productions and examples as Markdown, for the reference and for tools. */

import type { Example, Production } from './corpus.ts'

/** In EBNF, its explanation as a comment before it. */
export function printEbnf({ name, text, explanation }: Production): string {
  return `(* ${explanation} *)\n${name} = ${text} ;`
}

export function printProduction(production: Production): string {
  return block('ebnf', printEbnf(production))
}

export function printExample({ query, sql, note }: Pick<Example, 'query' | 'sql' | 'note'>): string {
  return `${note}\n\n${block('svc', query)}\n\n${block('sql', sql)}`
}

/** As a block of code, fenced by more back-ticks than stand together inside. */
export function block(language: string, text: string): string {
  let longest = 2
  for (const [marks] of text.matchAll(/`+/g)) longest = Math.max(longest, marks.length)
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}
