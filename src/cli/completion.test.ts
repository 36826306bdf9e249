/** The scripts of `svc completion`, loaded by the shells that they are for. */
import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { folderFixture } from '../../test/support/fixtures.ts'
import { printCompletion, SHELLS, type Shell } from './completion.ts'
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
const ABSENT = SHELLS.filter(shell => !has(shell))
for (const shell of ABSENT) {
  process.stderr.write(`completion.test.ts: skipped, without ${shell} (Debian: apt-get install ${shell})\n`)
}

/** Runs a script of the shell with the file of its completions and the words as arguments. */
function ask(shell: Shell, script: string, words: readonly string[]): string {
  const file = join(folder, `svc.${shell}`)
  writeFileSync(file, printCompletion(shell, program))
  const args: Record<Shell, readonly string[]> = {
    bash: ['--norc', '-c', script, 'bash', file, ...words],
    zsh: ['-f', '-c', script, 'zsh', file, ...words],
    fish: ['--no-config', '-c', script, file, ...words],
  }
  const env = { PATH: process.env.PATH, HOME: folder, TERM: 'dumb' }
  return execFileSync(shell, args[shell], { encoding: 'utf8', cwd: folder, env })
}

const lines = (text: string): readonly string[] => text.split('\n').filter(line => line !== '')

/** The words that a shell offers for the last of these words. */
const OFFERED: Readonly<Record<Shell, (...words: readonly string[]) => readonly string[]>> = {
  bash: (...words) => {
    const script = [
      'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); for last in "$@"; do :; done',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
      '_svc svc "$last"; printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    return lines(ask('bash', script.join('\n'), words))
  },
  // Another zsh on a pseudo-terminal gets the words and Tab, and the function svc prints what was completed.
  zsh: (...words) => {
    const script = [
      'zmodload zsh/zpty; zpty shell zsh -f -i',
      'zpty -w shell "unsetopt beep; autoload -Uz compinit; compinit -u -D; source $1"',
      'zpty -w shell \'svc() { print -r -- "BEGIN=$argv[-1]=END" }; print REA""DY\'',
      'zpty -r -m shell read "*READY*"; shift',
      'zpty -w -n shell "$*"$\'\\t\\n\'',
      'zpty -r -m shell read "*BEGIN=*=END*"; zpty -d shell; print -r -- "$read"',
    ]
    const [, word = ''] = /BEGIN=(.*)=END/.exec(ask('zsh', script.join('\n'), words)) ?? []
    return [word]
  },
  fish: (...words) => {
    const offers = ask('fish', 'source $argv[1]; complete -C "$argv[2..]"', words)
    return lines(offers).map(line => line.split('\t')[0] ?? '')
  },
}

describe.each(SHELLS)('%s', shell => {
  const offered = OFFERED[shell]

  test.skipIf(ABSENT.includes(shell))('completes commands, subcommands and options', { timeout: 60_000 }, () => {
    expect(offered('svc', 'we')).toEqual(['webhooks'])
    expect(offered('svc', 'webhooks', 'redel')).toEqual(['redeliver'])
    expect(offered('svc', 'webhooks', 'redeliver', '--al')).toEqual(['--all'])
    // The value of an option is not a command.
    expect(offered('svc', 'serve', '--port', '80', '--wo')).toEqual(['--workers'])
  })
})

const names = program.commands.map(command => command.name())

test.skipIf(ABSENT.includes('bash'))('bash offers everything that can follow', () => {
  expect(OFFERED.bash('svc', 'demo', '--')).toEqual(['--port', '--fresh'])
  expect(OFFERED.bash('svc', '')).toEqual([...names, '-V', '--version'])
})

test.skipIf(ABSENT.includes('fish'))('fish offers everything that can follow, with a description', () => {
  expect(OFFERED.fish('svc', 'demo', '--')).toEqual(expect.arrayContaining(['--port', '--fresh']))
  expect([...OFFERED.fish('svc', '')].sort()).toEqual([...names].sort())
  const offers = ask('fish', 'source $argv[1]; complete -C "svc dem"', [])
  expect(offers).toMatch(/^demo\tStart an embedded PostgreSQL .*\.\n$/)
})

test.skipIf(ABSENT.includes('zsh'))('zsh lists the commands with their descriptions', { timeout: 60_000 }, () => {
  const script = [
    'zmodload zsh/zpty; zpty shell zsh -f -i',
    'zpty -w shell "unsetopt beep; autoload -Uz compinit; compinit -u -D; source $1; bindkey \'^I\' list-choices"',
    'zpty -w shell \'print REA""DY\'; zpty -r -m shell read "*READY*"',
    'zpty -w -n shell $\'svc \\t\'; zpty -r -m shell read "*webhooks*--*"; zpty -d shell; print -r -- "$read"',
  ]
  const listed = ask('zsh', script.join('\n'), [])
  for (const name of names) expect(listed).toMatch(new RegExp(`^${name} +--`, 'm'))
})

test.each(SHELLS)('the script for %s names every command, and is valid where the shell is installed', shell => {
  const script = printCompletion(shell, program)
  for (const name of names) expect(script).toContain(name)
  if (ABSENT.includes(shell)) return
  const file = join(folder, `check.${shell}`)
  writeFileSync(file, script)
  expect(spawnSync(shell, ['-n', file], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
})
