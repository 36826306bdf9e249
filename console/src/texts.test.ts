/** Every text is in texts.ts: no other file of the console has a text for people. */
import ts from 'typescript-classic'
import { expect, test } from 'vitest'
import { filesBelow, read } from '../../test/tidy/tree.ts'

/** Attributes that people read or hear. */
const SPOKEN = ['alt', 'aria-description', 'aria-label', 'placeholder', 'title', 'label', 'lead']
const WORD = /\p{L}{2}/u

/** The texts of a file that are written in its elements. */
function textsOf(path: string, source = read(path)): readonly string[] {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.ESNext, true, ts.ScriptKind.TSX)
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node) && WORD.test(node.text)) found.push(node.text.trim())
    const { parent } = node
    const isContent = ts.isJsxExpression(parent) && (ts.isJsxElement(parent.parent) || ts.isJsxFragment(parent.parent))
    if (isContent && ts.isStringLiteralLike(node) && WORD.test(node.text)) found.push(node.text)
    if (ts.isJsxAttribute(node) && SPOKEN.includes(node.name.getText())) {
      const value = node.initializer
      if (value !== undefined && ts.isStringLiteral(value) && WORD.test(value.text)) found.push(value.text)
    }
    ts.forEachChild(node, visit)
  }
  ts.forEachChild(file, visit)
  return found
}

test('every text of an element is in the file of texts', () => {
  const files = filesBelow('console/src').filter(path => path.endsWith('.tsx'))
  expect(files.length).toBeGreaterThan(15)
  expect(files.flatMap(path => textsOf(path).map(text => `${path}: ${text}`))).toEqual([])
})

test('a text in an element is found', () => {
  expect(textsOf('x.tsx', `const x = <p title="a title" class="hint">Some words {'more'} {T.text} –</p>`)).toEqual([
    ...['a title', 'Some words', 'more'],
  ])
})
