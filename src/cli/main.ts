#!/usr/bin/env node
/** The program `svc`. What a command needs is loaded when it is called, so that none waits for the others. */
import { buffer } from 'node:stream/consumers'
import { run } from './program.ts'

// Whoever reads a pipe has enough when he closes it, as in `svc format | head -1`. The command ends as if he had read on.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}

process.exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  workingDirectory: process.cwd(),
  input: () => buffer(process.stdin),
  stdio: () => ({ input: process.stdin, output: process.stdout }),
  out: line => process.stdout.write(`${line}\n`),
  error: line => process.stderr.write(`${line}\n`),
  signals: process,
})
