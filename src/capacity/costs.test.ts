/** The table of costs is what `npm run bench -- capacity --record` wrote, and scaling.md shows it. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { readResultFiles } from '../../bench/harness/result-files.ts'
import {
  CAPTURED_CHANGE,
  type CpuCost,
  GROUP_CHANGE,
  LOG_READ,
  MEMORY_KB,
  NOTIFICATION,
  REQUEST_COSTS,
} from './costs.ts'

const results = await readResultFiles()
const page = new URL('../../docs/operations/scaling.md', import.meta.url)

/** The median of a lane by its unit. */
function figure(lane: string, unit: string): number {
  const [, , figures = ''] = results.lanes.find(([benchmark, name]) => benchmark === 'capacity' && name === lane) ?? []
  const [, value = ''] = new RegExp(`(?:^|, )([\\d ]+(?:\\.\\d+)?) ${unit}(?: \\(|,|$)`).exec(figures) ?? []
  expect(value, `${unit} of "${lane}" in LANES.md`).not.toBe('')
  return Number(value.replaceAll(' ', ''))
}

const measured = (lane: string): CpuCost => ({
  gateway: figure(lane, 'gateway µs'),
  database: figure(lane, 'PostgreSQL µs'),
})

/** Costs of single steps are differences of lanes, so both sides are rounded. */
function expectCost(cost: CpuCost, gateway: number, database: number): void {
  expect(cost.gateway).toBe(Math.max(0, Math.round(gateway)))
  expect(cost.database).toBe(Math.max(0, Math.round(database)))
}

test.each(Object.entries(REQUEST_COSTS))('the cost of %s is what LANES.md says', (_kind, { title, ...cost }) => {
  const { gateway, database } = measured(title)
  expectCost(cost, gateway, database)
})

test('the costs of changes are differences of the lanes in LANES.md', () => {
  const none = measured('changes without subscribers')
  const one = measured('200 changes a second, 1 subscriber for each')
  const forty = measured('200 changes a second, 40 subscribers for each')
  const read = measured('reads of a quiet change log')
  const nothing = measured('nothing to do, for as long as a read of a quiet change log')
  expectCost(LOG_READ, read.gateway - nothing.gateway, read.database - nothing.database)
  expectCost(CAPTURED_CHANGE, 0, none.database)
  // At 40 reads of the log and 200 changes per second, each change includes the cost of 0.2 reads.
  const reads = 40 / 200
  expectCost(
    GROUP_CHANGE,
    one.gateway - LOG_READ.gateway * reads,
    one.database - none.database - LOG_READ.database * reads,
  )
  expectCost(NOTIFICATION, (forty.gateway - one.gateway) / 39, (forty.database - one.database) / 39)
})

test('the figures of memory are those of LANES.md', () => {
  expect(MEMORY_KB.gateway).toBe(figure('get by id', 'KB resident'))
  expect(MEMORY_KB.idleSocket).toBe(figure('idle sockets', 'KB a socket'))
  expect(MEMORY_KB.subscribedSocket).toBe(figure('200 changes a second, 40 subscribers for each', 'KB a socket'))
})

/** To update the page, run `npx vitest run src/capacity/costs.test.ts -u`. */
test('scaling.md shows the costs', async () => {
  const text = await readFile(page, 'utf8')
  await expect(
    text.replace(/<!-- costs -->\n[\s\S]*?\n(?=The same benchmark)/, `<!-- costs -->\n${table()}\n\n`),
  ).toMatchFileSnapshot(page.pathname)
})

function table(): string {
  const rows = [
    ...Object.entries(REQUEST_COSTS).map(([kind, { title, ...cost }]) => [`\`${kind}\`: ${title}`, cost] as const),
    ['read of the change log', LOG_READ] as const,
    ['change of a captured row, with its trigger', CAPTURED_CHANGE] as const,
    ['change for one visibility group, with one subscriber', GROUP_CHANGE] as const,
    ['notification of each further subscriber', NOTIFICATION] as const,
  ]
  return [
    '| One of | CPU time in the gateway | CPU time in PostgreSQL |',
    '|---|---|---|',
    ...rows.map(([name, { gateway, database }]) => `| ${name} | ${gateway} µs | ${database} µs |`),
    '',
    '| Memory of | |',
    '|---|---|',
    `| a gateway under load, without sockets and result cache | ${(MEMORY_KB.gateway / 1024).toFixed(0)} MiB |`,
    `| an idle socket | ${MEMORY_KB.idleSocket} KB |`,
    `| a socket with one subscription | ${MEMORY_KB.subscribedSocket} KB |`,
  ].join('\n')
}
