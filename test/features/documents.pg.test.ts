/**
 * Every request in the README and in docs/ works as written on the demo's data, and returns the response
 * shown.
 */
import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { installed } from '../support/install.ts'
import { pattern } from '../support/page.ts'
import { execute } from '../support/postgres.ts'
import { sampleDatabase } from '../support/sample.ts'
import { filesBelow, read } from '../tidy/tree.ts'

interface Example {
  readonly page: string
  readonly command: string
  /** The JSON after the command's block. */
  readonly answer: unknown
  /** The CSV after the command's block. */
  readonly csv: string | undefined
}

/** A page whose commands change the database in sequence: tested in installation-guide.pg.test.ts. */
const OF_ITS_OWN = 'docs/guides/installation.md'
const PAGES = [
  'README.md',
  ...filesBelow('docs').filter(
    path => /^docs\/(guides|reference|internals)\/.*\.md$/.test(path) && path !== OF_ITS_OWN,
  ),
]
/** A code block in a list is indented. */
const BLOCKS = /^ *```sh\n([\s\S]*?)^ *```\n(?: *```(json|csv)\n([\s\S]*?)^ *```)?/gm

/** Requests in running text, of pages with whole tables of them: a method, a complete path, and a body. */
const IN_TABLES = PAGES.filter(page => page.includes('/coming-from-'))
const REQUESTS = /`(GET|POST|PATCH|DELETE) (\/(?:api|health)\/[^`\s{}…]+)(?: ([[{][^`]*))?`/g

/** In the order of the page: later requests can depend on earlier ones. */
const examples = PAGES.flatMap(page => {
  const text = read(page)
  const blocks = [...text.matchAll(BLOCKS)].flatMap(({ index, 1: commands = '', 2: kind, 3: shown = '' }) =>
    commands
      .trimEnd()
      .split('\n')
      .map(line => ({
        ...{ index, page, command: line.trim(), answer: kind === 'json' ? JSON.parse(shown) : undefined },
        csv: kind === 'csv' ? shown : undefined,
      })),
  )
  const requests = IN_TABLES.includes(page) ? [...text.matchAll(REQUESTS)] : []
  const others = requests.map(({ index, 1: method, 2: path, 3: body }) => {
    const ask = method === 'GET' ? 'get' : `send ${method}`
    const command = `${ask} '${path}'${body === undefined ? '' : ` -d '${body}'`}`
    return { index, page, command, answer: undefined, csv: undefined }
  })
  return [...blocks, ...others].sort((a, b) => a.index - b.index) satisfies readonly Example[]
})

/** Pages whose SQL creates the tables for their requests. */
const RECIPES = read('docs/guides/recipes.md')

/** The shell functions that the page asks the reader to define. */
const QUICK_START = read('docs/guides/quick-start.md')
const FUNCTIONS = [...QUICK_START.matchAll(/^\$ (\w+\(\) .*)$/gm)].map(([, definition]) => definition).join('\n')

const hasShell = ['bash', 'curl'].every(program => spawnSync(program, ['--version']).status === 0)
if (!hasShell) process.stderr.write('documents.pg.test.ts: skipped, for want of bash or curl\n')

test('examples were found', () => {
  expect(examples.length).toBeGreaterThan(20)
  expect(new Set(examples.map(example => example.page)).size).toBeGreaterThan(1)
})

describe.runIf(hasShell)('an example pasted into a shell', () => {
  let environment: NodeJS.ProcessEnv
  const database = databaseFixture(async () => {
    const sample = await sampleDatabase()
    for (const [, sql = ''] of RECIPES.matchAll(/^```sql\n([\s\S]*?)^```/gm))
      await execute(sample.adminUrl, sql.replace(/\bto gateway\b/g, `to ${new URL(sample.url).username}`))
    // Idempotency keys need it. No table is captured, as in the demo.
    await installed(sample, [])
    return sample
  })
  const gateway = gatewayFixture(database)

  beforeAll(async () => {
    const [tenant] = database.tenants
    const scopes = ['svc:explain']
    const token = await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk', scopes })
    environment = { ...process.env, URL: gateway.url, TOKEN: token }
  })

  test.each(examples)('$page: $command', async ({ command, answer, csv }) => {
    const script = `set -euo pipefail\n${FUNCTIONS}\n${command}`
    const output = await shell(script, environment)
    if (csv !== undefined) expect(output.trimEnd()).toBe(csv.trimEnd())
    else if (answer !== undefined) expect(JSON.parse(output)).toEqual(pattern(answer))
    else if (command.includes('stream=true'))
      expect(
        output
          .trimEnd()
          .split('\n')
          .map(row => JSON.parse(row)),
      ).toHaveLength(3)
    else {
      const answered = JSON.parse(output)
      expect(answered).not.toHaveProperty('error')
      // An example that should return rows does.
      expect(answered.data ?? answered.tables).not.toEqual([])
    }
  })
})

async function shell(script: string, env: NodeJS.ProcessEnv): Promise<string> {
  try {
    return (await promisify(execFile)('bash', ['-c', script], { env, maxBuffer: 16 * 1024 * 1024 })).stdout
  } catch (error) {
    // `head` closes the pipe early, which curl reports as an error.
    if (script.includes('| head') && error instanceof Error && 'stdout' in error) return String(error.stdout)
    throw error
  }
}
