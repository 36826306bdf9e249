import { expect, test } from 'vitest'
import { type Block, Blocks, RECORD_BYTES_MAX } from './blocks.ts'

/** The blocks of a text that arrives in parts of this size. */
function blocksOf(text: string, size: number, format: 'csv' | 'ndjson'): Block[] {
  const blocks = new Blocks(format)
  const found: Block[] = []
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) {
    const block = blocks.add(bytes.subarray(at, at + size))
    if (block !== null) found.push(block)
  }
  const last = blocks.end()
  return last === null ? found : [...found, last]
}

test.each(['csv', 'ndjson'] as const)('%s is cut at the ends of records, wherever its parts end', format => {
  const record = format === 'csv' ? `"${'x,\n'.repeat(40)}",1\r\n` : `${JSON.stringify({ a: 'x"\n'.repeat(40) })}\n`
  const linesOfOne = record.split('\n').length - 1
  const text = record.repeat(6_000)
  for (const size of [7_919, 65_536]) {
    const found = blocksOf(text, size, format)
    expect(found.length).toBeGreaterThan(1)
    expect(Buffer.concat(found.map(({ bytes }) => bytes)).toString()).toBe(text)
    let line = 1
    for (const block of found) {
      expect(block.line).toBe(line)
      expect(block.bytes.length % Buffer.byteLength(record)).toBe(0)
      line += (block.bytes.length / Buffer.byteLength(record)) * linesOfOne
    }
  }
})

test('the last record needs no line break', () => {
  expect(blocksOf('a\nb', 1, 'csv')).toEqual([{ bytes: Buffer.from('a\nb'), line: 1 }])
  expect(blocksOf('', 1, 'csv')).toEqual([])
})

test('a record above the limit is rejected with its line', () => {
  const long = `a\n"${'x'.repeat(RECORD_BYTES_MAX)}`
  expect(() => blocksOf(long, 65_536, 'csv')).toThrow('line 2: the record is larger than 2097152 bytes, or a quote')
  expect(() => blocksOf(`a\n${'x'.repeat(RECORD_BYTES_MAX + 1)}`, 65_536, 'ndjson')).toThrow('line 2: ')
})
