/** `npm run check`: types, style, the tests of the repository itself, and unused code, all at once. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { root } from './tree.js'

const CHECKS = {
  types: ['typescript/bin/tsc', '-p', 'tsconfig.json'],
  'types of the console': ['typescript/bin/tsc', '-p', 'console/tsconfig.json'],
  style: ['@biomejs/biome/bin/biome', 'check'],
  repository: ['vitest/vitest.mjs', 'run', 'test/tidy'],
  'unused code': ['knip/bin/knip.js'],
}

/** Resolves with whether the check passed; its output is printed when it has ended, so checks do not mix. */
function run([name, [program = '', ...options]]) {
  const started = Date.now()
  return new Promise(resolve => {
    const child = spawn(process.execPath, [join(root, 'node_modules', program), ...options], {
      cwd: root,
      env: { ...process.env, FORCE_COLOR: process.stdout.isTTY ? '1' : '0' },
    })
    const output = []
    child.stdout.on('data', chunk => output.push(chunk))
    child.stderr.on('data', chunk => output.push(chunk))
    child.on('close', code => {
      process.stdout.write(Buffer.concat(output))
      const seconds = ((Date.now() - started) / 1_000).toFixed(1)
      process.stdout.write(`${name}: ${code === 0 ? 'passed' : 'failed'} after ${seconds} s\n`)
      resolve(code === 0)
    })
  })
}

const passed = await Promise.all(Object.entries(CHECKS).map(run))
if (passed.includes(false)) process.exitCode = 1
