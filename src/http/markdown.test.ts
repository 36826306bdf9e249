import { expect, test } from 'vitest'
import { renderMarkdown } from './markdown.ts'

const html = (markdown: string): string => renderMarkdown(markdown, target => target).html

test('headings have anchors, and the first one is the title', () => {
  const page = '# The `svc` program\n\n## Limits & more\n\n## Limits & more\n\nWords\nof a paragraph.\n'
  expect(renderMarkdown(page, () => null)).toEqual({
    title: 'The svc program',
    html: [
      '<h1 id="the-svc-program">The <code>svc</code> program</h1>',
      '<h2 id="limits--more">Limits &amp; more</h2>',
      '<h2 id="limits--more-1">Limits &amp; more</h2>',
      '<p>Words\nof a paragraph.</p>',
    ].join('\n'),
  })
})

test.each([
  ['**bold** and *slanted*', '<strong>bold</strong> and <em>slanted</em>'],
  ['``a ` b`` and ` c', '<code>a ` b</code> and ` c'],
  ['[`[[gateway.issuers]]`](a.md#b)', '<a href="a.md#b"><code>[[gateway.issuers]]</code></a>'],
  ['**[a link](a.md)** <https://example.com>', null],
  ['![a board](board.png)', '<img src="board.png" alt="a board">'],
  ['one<br>two', 'one<br>two'],
  ['2 * 3 * 4, \\_ and \\*', '2 * 3 * 4, _ and *'],
])('%s is rendered', (markdown, expected) => {
  const found =
    expected ?? '<strong><a href="a.md">a link</a></strong> <a href="https://example.com">https://example.com</a>'
  expect(html(markdown)).toBe(`<p>${found}</p>`)
})

test('lists contain paragraphs, code and other lists', () => {
  expect(html('1. One\n   continued:\n\n   ```sh\n   run\n   ```\n\n2. Two\n   - a\n   - b\n\nAfter.')).toBe(
    [
      '<ol>\n<li><p>One\ncontinued:</p>\n<pre tabindex="0"><code>run</code></pre>\n</li>',
      '<li><p>Two</p>\n<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n</li>\n</ol>\n<p>After.</p>',
    ].join('\n'),
  )
})

test('tables have cells with code that contains |, and no empty header', () => {
  expect(html('| a | |\n|---|---|\n| `x \\| y` | 1 |')).toBe(
    '<div class="scroll" tabindex="0"><table><thead><tr><th>a</th><td></td></tr></thead>' +
      '<tbody><tr><td><code>x | y</code></td><td>1</td></tr></tbody></table></div>',
  )
  expect(html('| | |\n|---|---|\n| a | b |')).not.toContain('thead')
})

test('quotes are rendered, and comments are left out', () => {
  expect(html('<!-- from a table -->\n> said\n> **twice**\n\n<!-- two\nlines -->\nWords.')).toBe(
    '<blockquote>\n<p>said\n<strong>twice</strong></p>\n</blockquote>\n<p>Words.</p>',
  )
})

test('everything else is text', () => {
  const attack = '<img src=x onerror="attack()">'
  const escaped = '&lt;img src=x onerror=&quot;attack()&quot;&gt;'
  const page = [
    `# ${attack}`,
    `${attack} \`${attack}\` **${attack}** [${attack}](a.md"onclick="attack")`,
    `- ${attack}\n\n| ${attack} |\n|---|\n| ${attack} |\n\n> ${attack}\n\n\`\`\`html\n${attack}\n\`\`\``,
    `![${attack}](x)`,
  ].join('\n\n')
  const { title, html: rendered } = renderMarkdown(page, target => `?page=${target}`)
  expect(title).toBe(escaped)
  expect(rendered.split(escaped)).toHaveLength(12)
  const tags = new Set(rendered.match(/<[a-z][^>]*>/g)?.map(tag => tag.replace(/^<(\w+)[^>]*>$/, '$1')))
  expect([...tags].sort()).toEqual(
    [...['h1', 'p', 'code', 'strong', 'ul', 'li', 'div', 'table', 'thead', 'tr', 'th', 'tbody', 'td']]
      .concat(['blockquote', 'pre', 'img', 'a'])
      .sort(),
  )
  expect(rendered.replace(/"[^"]*"/g, '""')).not.toMatch(/<[^>]* on\w+=/)
})

test('a link that leads nowhere is text', () => {
  expect(renderMarkdown('[a](b.md) and ![c](d.png)', () => null).html).toBe('<p>a and c</p>')
})
