#!/usr/bin/env node
/**
 * The program `svc`. The modules of a command are loaded when it is called, so that no command waits for
 * others.
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

const code = await run(process.argv.slice(2), {
  environment: process.env,
  workingDirectory: process.cwd(),
  input: () => buffer(process.stdin),
  stdio: () => ({ input: process.stdin, output: process.stdout }),
  out: line => process.stdout.write(`${line}\n`),
  error: line => process.stderr.write(`${line}\n`),
  signals: process,
})
process.exitCode = isCut ? EXIT.failed : code
