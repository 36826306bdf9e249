import { expect, test } from 'vitest'
import { withProgress } from './progress.ts'
import type { Terminal } from './world.ts'

const ERASE = '\r\u001b[K'

function terminal({ columns = 80, hasColors = false }: Partial<Terminal> = {}) {
  const written: string[] = []
  return { columns, hasColors, written, write: (text: string) => void written.push(text) }
}

test('the bar has its share of full blocks, replaces itself, and is erased at the end', async () => {
  const { written, ...one } = terminal()
  const result = await withProgress({ terminal: one }, async show => {
    show('Importing tags.csv', 0)
    show('Importing tags.csv', 0.5)
    show('Importing tags.csv', 0.5)
    return 'done'
  })
  expect(result).toBe('done')
  expect(written).toEqual([
    `${ERASE}${'░'.repeat(24)}   0 %  Importing tags.csv`,
    `${ERASE}${'█'.repeat(12)}${'░'.repeat(12)}  50 %  Importing tags.csv`,
    ERASE,
  ])
})

test('the bar is erased when the task fails', async () => {
  const { written, ...one } = terminal()
  const failing = withProgress({ terminal: one }, async show => {
    show('Reading', null)
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  expect(written).toEqual([`${ERASE}${'█'.repeat(6)}${'░'.repeat(18)}        Reading`, ERASE])
})

test('colours are used only on a terminal that shows them', async () => {
  for (const hasColors of [true, false]) {
    const { written, ...one } = terminal({ hasColors })
    await withProgress({ terminal: one }, async show => show('Reading', 1))
    expect(written.join('').includes('\u001b[36m')).toBe(hasColors)
  }
})

test('a line is shorter than the terminal, and names in it are without control characters', async () => {
  for (const columns of [40, 25, 10]) {
    const { written, ...one } = terminal({ columns })
    await withProgress({ terminal: one }, async show => show(`Importing a\u001b[2J\n${'x'.repeat(100)}.csv`, 1))
    const lines = written.map(text => text.replace(ERASE, ''))
    expect(Math.max(...lines.map(line => line.length))).toBeLessThan(columns)
    expect(lines.join('')).not.toMatch(/\p{Cc}/u)
  }
})

test('nothing is written without a terminal', async () => {
  expect(await withProgress({ terminal: null }, async show => show('Reading', 1))).toBeUndefined()
})
