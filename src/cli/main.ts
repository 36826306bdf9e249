#!/usr/bin/env node
/** The program `svc`. What a command needs is loaded when it is called, so that none waits for the others. */
import { buffer } from 'node:stream/consumers'
import { run } from './program.ts'
import { EXIT } from './world.ts'

// Whoever reads a pipe has enough when they close it, as in `svc format | head -1`. The command ends as if they had read on.
let isCut = false
for (const [name, stream] of [
  ['output', process.stdout],
  ['error', process.stderr],
] as const) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return
    // As on a full disk: a gateway that cannot log goes on, but what a command printed is not complete.
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
