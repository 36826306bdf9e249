#!/usr/bin/env node
/** The program `svc`. What a command needs is loaded when it is called, so that none waits for the others. */
import { buffer } from 'node:stream/consumers'
import { run } from './program.ts'

process.exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  workingDirectory: process.cwd(),
  input: () => buffer(process.stdin),
  stdio: () => ({ input: process.stdin, output: process.stdout }),
  out: line => process.stdout.write(`${line}\n`),
  error: line => process.stderr.write(`${line}\n`),
  signals: process,
})
