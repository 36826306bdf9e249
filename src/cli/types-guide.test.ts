/** The module in docs/guides/typescript.md is what `svc types` prints. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { runCommand } from '../../test/support/cli.ts'

const PAGE = '../../docs/guides/typescript.md'
const DOCUMENT = `
  enum priority { low, high }
  table projects { id int identity always primary_key, name text not_null }
  table tasks {
    id i64 identity always primary_key, project_id int not_null references projects (id), title text not_null,
    priority priority not_null default 'low', estimate numeric(6, 2), details jsonb, due date
  }
  function close_task(task i64, note text = null) returns tasks language sql volatile $$ select 1 $$`

/** To update the page, run `npx vitest run src/cli/types-guide.test.ts -u`. */
test('the guide shows the types of a table as they are printed', async () => {
  const page = await readFile(new URL(PAGE, import.meta.url), 'utf8')
  const block = /(<!-- types: .*-->\n)[\s\S]*?(\n<!-- \/types -->)/
  expect(page).toMatch(block)
  const { out, error } = await runCommand(['types', '-'], { input: Buffer.from(DOCUMENT) })
  const printed = [...out, ...error].join('\n').split('\nexport type Json')[0]?.trimEnd()
  const shown = page.replace(block, (_, start, end) => `${start}\n\`\`\`ts\n${printed}\n\`\`\`\n${end}`)
  await expect(shown).toMatchFileSnapshot(PAGE)
})
