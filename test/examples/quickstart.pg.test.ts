/** Executes examples/quickstart as its README says. */
import { afterAll, describe, test } from 'vitest'
import { openStory, SHELL_MISSING, type Story } from './story.ts'

if (SHELL_MISSING !== null) process.stderr.write(`quickstart.pg.test.ts: skipped, since ${SHELL_MISSING}\n`)

describe.skipIf(SHELL_MISSING !== null)('examples/quickstart', () => {
  let story: Story
  afterAll(() => story?.close())

  test('works as its README describes', { timeout: 180_000 }, async () => {
    story = await openStory('quickstart')
    await story.play()
  })
})
