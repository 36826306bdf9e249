/**
 * docs/guides/allow-list.md#recording: the recorded shapes are an allow-list that approves the queries they
 * came from.
 */
import { chmod, lstat, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parse } from '../../language/syntax/parse.ts'
import { loadQueryList, SHAPES_MAX } from './allow-list.ts'
import type { QueryShape } from './pattern.ts'
import { shapeOfQuery } from './query-shape.ts'
import { createRecorder, type Recorder } from './recorder.ts'

let folder: string
let file: string
let problems: string[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-record-'))
  file = join(folder, 'allow.txt')
  problems = []
})
afterEach(() => rm(folder, { recursive: true }))

const parseRequest = (line: string) => ({ key: line, values: [] })
const request = (line: string): QueryShape => ({ key: line, values: [], line: () => line })
const query = (text: string) => shapeOfQuery(parse(text))
const open = () => createRecorder({ file, parseRequest, onProblem: problem => problems.push(problem) })

function answered(recorder: Recorder, ...shapes: readonly QueryShape[]): void {
  for (const shape of shapes) {
    const incoming = {}
    recorder.approve(incoming, shape)
    recorder.answered(incoming)
  }
}

test('records each shape once, sorted, and only those of successful requests', async () => {
  const recorder = await open()
  recorder.approve({}, request('GET /api/refused'))
  recorder.answered({})
  answered(
    recorder,
    request('GET /api/b'),
    query('get t where a = 1'),
    query("get t where a = 'x'"),
    request('GET /api/a'),
  )
  await recorder.close()
  expect(await readFile(file, 'utf8')).toBe('GET /api/a\nGET /api/b\nget t where a = ?\n')
  expect(recorder.recorded()).toBe(3)
  expect(problems).toEqual([])
  expect((await loadQueryList(file, parseRequest)).patterns.has(query('get t where a = 7'))).toBe(true)
})

test('keeps the existing lines and comments, and does not repeat them', async () => {
  await writeFile(file, '\ufeff# ours\r\nget t where a = ? # by hand\r\nGET /api/b')
  const recorder = await open()
  answered(recorder, query('get t where a = 1'), request('GET /api/b'), request('GET /api/a'))
  await recorder.close()
  expect(await readFile(file, 'utf8')).toBe('# ours\r\nget t where a = ? # by hand\r\nGET /api/b\nGET /api/a\n')
})

test('without new shapes the file is neither changed nor created', async () => {
  const recorder = await open()
  await recorder.close()
  expect(await readdir(folder)).toEqual([])
})

test('shapes reach the file before close, the file is always complete, and no other file remains', async () => {
  const recorder = await open()
  for (let n = 0; n < 200; n++) {
    answered(recorder, request(`GET /api/t${String(n).padStart(3, '0')}`))
    if (n % 20 === 0) await new Promise(setImmediate)
    const text = await readFile(file, 'utf8').catch(() => '')
    expect(text === '' || text.endsWith('\n')).toBe(true)
  }
  await recorder.close()
  expect((await readFile(file, 'utf8')).trimEnd().split('\n')).toHaveLength(200)
  expect(await readdir(folder)).toEqual(['allow.txt'])
})

test('keeps the mode of the file and a symbolic link to it', async () => {
  await writeFile(file, '# mine\n')
  await chmod(file, 0o600)
  const link = join(folder, 'link.txt')
  await symlink(file, link)
  const recorder = await createRecorder({ file: link, parseRequest, onProblem: problem => problems.push(problem) })
  answered(recorder, request('GET /api/a'))
  await recorder.close()
  expect((await lstat(link)).isSymbolicLink()).toBe(true)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await readFile(file, 'utf8')).toBe('# mine\nGET /api/a\n')
})

test('a file that is not a list is not overwritten', async () => {
  await writeFile(file, 'GET /api/a\nnot a query\n')
  await expect(open()).rejects.toThrow(/allow\.txt:2: /)
})

test('a missing folder is reported, and close fails', async () => {
  file = join(folder, 'gone', 'allow.txt')
  const recorder = await open()
  answered(recorder, request('GET /api/a'))
  await expect(recorder.close()).rejects.toThrow('allow.txt cannot be written: ENOENT')
  expect(problems.length).toBeGreaterThan(0)
})

test('a query that no line can approve is reported, not recorded', async () => {
  const recorder = await open()
  answered(recorder, query('get `a\nb`'), query('get `a  \n  b`'), request('GET /api/a\nGET /api/everything'))
  await recorder.close()
  expect(problems).toHaveLength(3)
  expect(problems[0]).toMatch(/^no line can approve this query/)
  expect(await readdir(folder)).toEqual([])
})

test('the number of recorded shapes is bounded', async () => {
  await writeFile(file, Array.from({ length: SHAPES_MAX - 1 }, (_, n) => `GET /api/t${n}\n`).join(''))
  const recorder = await open()
  answered(recorder, request('GET /api/last'), request('GET /api/more'), request('GET /api/and-more'))
  await recorder.close()
  expect(problems).toEqual([expect.stringMatching(/has 10000 shapes, the maximum/)])
  expect(await readFile(file, 'utf8')).toMatch(/GET \/api\/last\n$/)
  expect((await loadQueryList(file, parseRequest)).patterns.size).toBe(SHAPES_MAX)
})
