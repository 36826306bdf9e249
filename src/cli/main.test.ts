/** The built program on a pseudo-terminal of util-linux's `script`, and in a pipe. */
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { BUILT_MAIN } from '../../test/support/process.ts'
import { findProgram } from '../../test/support/programs.ts'

const SCRIPT = findProgram('script')
if (SCRIPT === null) process.stderr.write('main.test.ts: script is missing (Debian: apt-get install bsdutils)\n')

const COMMAND = `'${process.execPath}' '${BUILT_MAIN}' --help`
const COLOUR = /\u001b\[\d/

function printed(environment: Readonly<Record<string, string>>, command = COMMAND): string {
  const env = { PATH: process.env.PATH, TERM: 'xterm-256color', ...environment }
  return execFileSync(SCRIPT ?? '', ['-qec', command, '/dev/null'], { encoding: 'utf8', env })
}

// Options of util-linux, which other systems do not have.
test.skipIf(SCRIPT === null || process.platform !== 'linux')(
  'a terminal gets colours; NO_COLOR and a pipe do not',
  () => {
    const coloured = printed({})
    expect(coloured).toContain('Usage:')
    expect(coloured).toMatch(COLOUR)
    // An empty value has no effect, as on https://no-color.org.
    expect(printed({ NO_COLOR: '' })).toMatch(COLOUR)
    for (const plain of [printed({ NO_COLOR: '1' }), printed({}, `${COMMAND} | cat`), printed({ TERM: 'dumb' })]) {
      expect(plain).toContain('Usage:')
      expect(plain).not.toMatch(COLOUR)
    }
  },
)
