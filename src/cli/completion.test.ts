import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { folderFixture } from '../../test/support/fixtures.ts'
import { printCompletion, SHELLS } from './completion.ts'
import { createProgram } from './program.ts'

const program = createProgram(
  {
    ...{ environment: {}, workingDirectory: '.', input: async () => new Uint8Array(), out() {}, error() {} },
    stdio: () => ({ input: new PassThrough(), output: new PassThrough() }),
    ...{ hasColors: false, terminal: null },
    signals: { on() {}, off() {}, exit() {} },
  },
  () => {},
)
const folder = folderFixture()
const has = (shell: string) => spawnSync(shell, ['-c', ':']).status === 0

/** The words that bash offers for the last of these words. */
function offered(...words: readonly string[]): readonly string[] {
  const file = join(folder, 'svc.bash')
  writeFileSync(file, printCompletion('bash', program))
  const script = [
    'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); for last in "$@"; do :; done',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
    '_svc svc "$last"; printf "%s\\n" "${COMPREPLY[@]}"',
  ].join('\n')
  return execFileSync('bash', ['-c', script, 'bash', file, ...words], { encoding: 'utf8' })
    .trim()
    .split('\n')
}

// A machine without bash has nothing that could complete.
test.skipIf(!has('bash'))('bash completes commands, subcommands and options', () => {
  expect(offered('svc', 'we')).toEqual(['webhooks'])
  expect(offered('svc', 'webhooks', 're')).toEqual(['redeliver'])
  expect(offered('svc', 'webhooks', 'redeliver', '--a')).toEqual(['--all'])
  expect(offered('svc', 'demo', '--')).toEqual(['--port', '--fresh'])
  expect(offered('svc', '')).toEqual(program.commands.map(command => command.name()).concat(['-V', '--version']))
  // The value of an option is not a command.
  expect(offered('svc', 'serve', '--port', '80', '--wo')).toEqual(['--workers'])
})

test.each(SHELLS)('the script for %s names every command, and is valid where the shell is installed', shell => {
  const script = printCompletion(shell, program)
  for (const { name } of program.commands.map(command => ({ name: command.name() }))) expect(script).toContain(name)
  if (!has(shell)) return
  const file = join(folder, `check.${shell}`)
  writeFileSync(file, script)
  expect(spawnSync(shell, ['-n', file], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
})
