/** Runs the recipes of the builder's guide: each as a separate module, compiled with strict types. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { ROOT } from '../tidy/tree.ts'

export interface Built {
  readonly query: string
  readonly sql: string
}

/** The `query` of each module as text and as SQL. Rejects with the compiler's errors. */
export async function buildRecipes(codes: readonly string[]): Promise<readonly Built[]> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-recipes-'))
  try {
    const tsconfig = join(folder, 'tsconfig.json')
    const paths = { 'svc-gateway/language': [join(ROOT, 'src/language/index.ts')] }
    await mkdir(join(folder, 'recipes'))
    await writeFile(join(folder, 'package.json'), '{"type": "module"}')
    await writeFile(
      tsconfig,
      JSON.stringify({
        extends: join(ROOT, 'tsconfig.json'),
        compilerOptions: { paths, types: [], isolatedDeclarations: false, declaration: false },
        include: ['recipes'],
      }),
    )
    for (const [at, code] of codes.entries()) await writeFile(join(folder, `recipes/${at}.ts`), code)
    const modules = codes.map((_, at) => `await import(${JSON.stringify(`./recipes/${at}.ts`)})`)
    await writeFile(
      join(folder, 'run.mjs'),
      `const built = [${modules.join(', ')}]
       console.log(JSON.stringify(built.map(({ query }) => ({ query: query.toText(), sql: query.toSql().text }))))`,
    )
    const run = promisify(execFile)
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', tsconfig, '--noEmit']).catch(
      ({ stdout }) => {
        throw new Error(stdout)
      },
    )
    const loader = pathToFileURL(join(ROOT, 'node_modules/tsx/dist/loader.mjs')).href
    const { stdout } = await run(process.execPath, ['--import', loader, join(folder, 'run.mjs')], {
      env: { ...process.env, TSX_TSCONFIG_PATH: tsconfig },
    })
    return JSON.parse(stdout)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
