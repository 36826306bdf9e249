/**
 * Runs the command of this process. The modules of a command are loaded when it is called, so that no command
 * waits for others.
 */
import { buffer } from 'node:stream/consumers'
import { run } from './program.ts'
import { EXIT } from './world.ts'

// If the reader closes the pipe, as `head -1` does, the command ends without an error, as if everything had
// been read.
let isCut = false
for (const [name, stream] of [
  ['output', process.stdout],
  ['error', process.stderr],
] as const) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    // As with a full disk: a gateway that cannot log continues, but the output of a command is incomplete.
    if (name === 'output' && !isCut) process.stderr.write(`standard output cannot be written: ${error.message}\n`)
    isCut = true
    process.exitCode = EXIT.failed
  })
}

/** The width of a terminal that does not report it. */
const COLUMNS = 80

/** https://no-color.org: a value that is not empty disables colours. */
function hasColors(stream: NodeJS.WriteStream): boolean {
  const { NO_COLOR = '', ...others } = process.env
  return stream.isTTY === true && NO_COLOR === '' && stream.hasColors(others)
}

const { stderr } = process
const code = await run(process.argv.slice(2), {
  environment: process.env,
  workingDirectory: process.cwd(),
  input: () => buffer(process.stdin),
  stdio: () => ({ input: process.stdin, output: process.stdout }),
  out: line => process.stdout.write(`${line}\n`),
  error: line => process.stderr.write(`${line}\n`),
  hasColors: hasColors(process.stdout),
  // A dumb terminal cannot erase a line.
  terminal:
    stderr.isTTY === true && process.env.TERM !== 'dumb'
      ? {
          get columns() {
            // A terminal can have no size, for example in a container.
            return stderr.columns || COLUMNS
          },
          hasColors: hasColors(stderr),
          write: text => stderr.write(text),
        }
      : null,
  signals: process,
})
process.exitCode = isCut ? EXIT.failed : code
