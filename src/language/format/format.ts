/** The canonical text of a tree (docs/reference/language.md#canonical-form). */

import { parseMany } from '../syntax/parse.ts'
import type { Statement } from '../tree/ast.ts'
import { assertNesting } from '../tree/nesting.ts'
import { hardline, join, renderText } from './document.ts'
import { renderWithComments } from './format-comments.ts'
import { documentOf } from './format-statement.ts'

const WIDTH = 80

/** The text of a tree. What has no text form is a `LanguageError`. */
export function formatStatement(statement: Statement): string {
  assertNesting(statement)
  return renderText(documentOf(statement), WIDTH)
}

/**
 * The text in canonical form, its comments beside what they stood beside. Several statements are parted by `;` and an empty line. A text that is no
 * query is a `QuerySyntaxError`.
 */
export function format(text: string): string {
  const parsed = parseMany(text)
  // Nothing, or only comments.
  if (parsed.length === 0) return text.trim()
  const doc = join(
    parsed.map(({ statement }) => documentOf(statement)),
    [';', hardline, hardline],
  )
  const comments = parsed.flatMap(one => one.comments)
  return comments.length === 0 ? renderText(doc, WIDTH) : renderWithComments(doc, WIDTH, text, comments)
}
