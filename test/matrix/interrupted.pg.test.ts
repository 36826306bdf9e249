/** An interrupted run of the matrix leaves no process and no file behind, and the next run resumes it. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runMatrix } from './matrix.ts'
import { processesNaming } from './scratch.ts'

const ARGUMENTS = ['--only=postgresql-18', '--files=src/catalog/query.pg,src/install/install.pg']

test('an interrupted run stops, and the next one resumes it', { timeout: 300_000 }, async () => {
  const cache = await mkdtemp(join(tmpdir(), 'svc-matrix-'))
  const stop = new AbortController()
  const said: string[] = []
  const run = (signal: AbortSignal, heard: (line: string) => void) =>
    runMatrix(ARGUMENTS, {
      ...{ cache, page: join(cache, 'page.md'), now: Date.now(), signal },
      print(line) {
        said.push(line)
        heard(line)
      },
    })
  try {
    const stopped = await run(stop.signal, line => {
      if (line.endsWith('1 of 2 files')) stop.abort()
    })
    expect(stopped).toBe(1)
    expect(said.join('\n')).not.toContain('did not finish')
    expect(await processesNaming(join(tmpdir(), `svcm-${process.pid}`))).toEqual([])
    expect(await readdir(tmpdir())).not.toContain(`svcm-${process.pid}`)

    said.length = 0
    expect(await run(new AbortController().signal, () => {})).toBe(0)
    expect(said[0]).toMatch(/: 2 files, 1 of them have passed before$/)
    expect(said.at(-1)).toMatch(/^\d+ passed, 0 failed, \d+ skipped$/)
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
})
