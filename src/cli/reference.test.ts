import { expect, test } from 'vitest'
import type { SvcCommand } from './command.ts'
import { createProgram } from './program.ts'
import { printCliReference } from './reference.ts'
import type { World } from './world.ts'

/** The commands are only described, not run. */
const program = createProgram({} as World, () => undefined)

function below(command: SvcCommand, parent: string): readonly (readonly [string, SvcCommand])[] {
  return command.commands.flatMap(one => {
    const name = `${parent} ${one.name()}`
    return [[name, one] as const, ...below(one, name)]
  })
}

/** To update the page, run `npx vitest run src/cli/reference.test.ts -u`. */
test('docs/reference/cli.md is generated from the commands', async () => {
  await expect(printCliReference(program)).toMatchFileSnapshot('../../docs/reference/cli.md')
})

test('every command, option and argument is in the reference, each command with an example', () => {
  const page = printCliReference(program)
  const commands = below(program, 'svc')
  expect(commands.length).toBeGreaterThan(15)
  for (const [name, command] of commands) {
    expect(page).toMatch(new RegExp(`^##+ ${name}$`, 'm'))
    for (const { flags } of command.options) expect(page).toContain(`| \`${flags}\` |`)
    expect(
      command.listedExamples.some(([line]) => line.includes(name)),
      `${name} has an example`,
    ).toBe(true)
  }
})

test('the reference has a row for each option', () => {
  expect(printCliReference(program)).toContain('| `-e, --expires <duration>` | `1h` | lifetime: 30s, 15m, 1h, 7d |')
})
