/**
 * Runs `npm audit` for the packages that users install. A known vulnerability of level high or above fails. A
 * registry without an audit endpoint (mirrors, closed networks) causes a message and not a failure.
 */
import { spawnSync } from 'node:child_process'
import { root } from './tree.js'

const TIMEOUT_MS = 60_000

const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], {
  cwd: root,
  encoding: 'utf8',
  timeout: TIMEOUT_MS,
  shell: process.platform === 'win32',
})
const found = severities(stdout)
if (found === null) {
  console.log('The registry does not answer audit requests here; skipped.')
} else {
  const grave = found.high + found.critical
  console.log(`Known vulnerabilities in what users install: ${JSON.stringify(found)}`)
  if (grave > 0) {
    console.error('See `npm audit --omit=dev`.')
    process.exitCode = 1
  }
}

function severities(text) {
  try {
    return JSON.parse(text).metadata?.vulnerabilities ?? null
  } catch {
    return null
  }
}
