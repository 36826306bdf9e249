/** The code of docs/guides/client.md compiles with the types of the sample, and runs against a gateway. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { databaseFixture, folderFixture, gatewayFixture } from '../support/fixtures.ts'
import { startSvc } from '../support/process.ts'
import { sampleDatabase } from '../support/sample.ts'
import { ROOT, read } from '../tidy/tree.ts'

const run = promisify(execFile)
const WAIT_MS = 600_000
const BLOCKS = [...read('docs/guides/client.md').matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code = '']) => code)

const database = databaseFixture(sampleDatabase)
const gateway = gatewayFixture(database)
const folder = folderFixture(join(ROOT, '.cache'))

test('the guide compiles and prints what it describes', { timeout: WAIT_MS }, async () => {
  expect(BLOCKS.length).toBeGreaterThan(5)
  const types = startSvc(['types', '--out', join(folder, 'schema.ts')], { DATABASE_URL: database.url })
  expect(await types.exited).toEqual([0, null])
  // The names that the reader defines, and a wait for the first rows before the end.
  const [last = ''] = BLOCKS.slice(-1)
  const before = `
    import { WebSocket } from 'ws'
    Object.assign(globalThis, { WebSocket })
    const URL_OF_GATEWAY = process.env.URL ?? ''
    const getToken = (_why: unknown) => process.env.TOKEN ?? ''
    let shown = (_: number) => {}
    const first = new Promise<number>(resolve => { shown = resolve })
    const show = (rows: readonly { number: string }[]) => shown(rows.length)`
  const program = [before, ...BLOCKS.slice(0, -1), 'console.log(await first)', last].join('\n')
  await writeFile(join(folder, 'program.ts'), program)
  await writeFile(join(folder, 'package.json'), '{"type": "module"}')
  const tsconfig = join(folder, 'tsconfig.json')
  const paths = { 'svc-gateway/client': [join(ROOT, 'src/client/index.ts')] }
  const compilerOptions = { paths, types: ['node'], isolatedDeclarations: false, declaration: false }
  await writeFile(
    tsconfig,
    JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, files: ['program.ts'] }),
  )
  await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', tsconfig, '--noEmit']).catch(
    ({ stdout }) => {
      throw new Error(stdout)
    },
  )
  const [tenant] = database.tenants
  const TOKEN = await gateway.token({ tenantId: tenant?.id, userId: tenant?.userId, role: 'clerk' })
  const loader = pathToFileURL(join(ROOT, 'node_modules/tsx/dist/loader.mjs')).href
  const { stdout } = await run(process.execPath, ['--import', loader, join(folder, 'program.ts')], {
    env: { ...process.env, TSX_TSCONFIG_PATH: tsconfig, URL: gateway.url, TOKEN },
  })
  const lines = stdout.trimEnd().split('\n')
  for (const line of lines.slice(0, 5)) expect(line).toMatch(/^\S+ \d+(\.\d+)? \D.* [1-3]$/)
  expect(lines.slice(5)).toEqual([
    ...[expect.stringMatching(/^[1-9]\d* (draft|\w+)$/), expect.stringMatching(/^[1-9]\d+$/)],
    ...['1 3', 'true', 'hand-made-mugs', '2', '10', 'NOT_FOUND 404'],
  ])
})
