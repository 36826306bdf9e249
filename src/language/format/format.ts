/** Formats trees and texts canonically (docs/reference/language.md#canonical-form). */

import { parseMany } from '../syntax/parse.ts'
import type { Statement } from '../tree/ast.ts'
import { assertNesting } from '../tree/nesting.ts'
import { hardline, join, renderText } from './document.ts'
import { renderWithComments } from './format-comments.ts'
import { statementDocument } from './format-statement.ts'

const WIDTH = 80

/**
 * The canonical text of a tree.
 *
 * @throws LanguageError if a part of the tree has no text form.
 */
export function formatStatement(statement: Statement): string {
  assertNesting(statement)
  return renderText(statementDocument(statement), WIDTH)
}

/**
 * The canonical form of a text, with its comments. Several statements are separated by `;` and an empty line.
 *
 * @throws QuerySyntaxError for an invalid text.
 */
export function format(text: string): string {
  const parsed = parseMany(text)
  // An empty text, or only comments.
  if (parsed.length === 0) return text.trim()
  const doc = join(
    parsed.map(({ statement }) => statementDocument(statement)),
    [';', hardline, hardline],
  )
  const comments = parsed.flatMap(one => one.comments)
  return comments.length === 0 ? renderText(doc, WIDTH) : renderWithComments(doc, WIDTH, text, comments)
}
