import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LogEntry } from './log-statements.ts'
import { createRecentEntries, RECENT_ENTRIES_MAX } from './recent-entries.ts'
import type { Snapshot } from './snapshot.ts'

const entryOf = (txid: number, table = 'public.t'): LogEntry => ({
  // Every second one is from the write-ahead log.
  ...{ txid: txid % 2 === 0 ? String(txid) : '1', storedBy: txid % 2 === 0 ? null : String(txid) },
  ...{ at: '', table, operation: 'U', key: '{}', oldKey: null, old: null, routes: [null, null] },
})
const at = (xmax: number, open: readonly number[] = []): Snapshot => ({
  ...{ xmin: BigInt(open[0] ?? xmax), xmax: BigInt(xmax), open: open.map(BigInt) },
})
const storing = ({ txid, storedBy }: LogEntry): bigint => BigInt(storedBy ?? txid)

const includes = ({ xmax, open }: Snapshot, txid: bigint) => txid < xmax && !open.includes(txid)
const COLUMNS = new Map([['public.t', 'tenant']])
const TABLES = new Map([['public.t', 'tenant']])

/** A transaction begins, the first or last open one commits, the log is read, or a client reads its rows. */
const STEP = fc.constantFrom('begin', 'commit first', 'commit last', 'read', 'client')

test('the entries since any position are those that its snapshot does not include, without repetition', () => {
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 60 }), steps => {
      const recent = createRecentEntries()
      const written: LogEntry[] = []
      const open: number[] = []
      const clients: Snapshot[] = []
      let next = 98
      const now = () => at(next, open)
      let before = now()
      const read = () => {
        const to = now()
        const entries = written.filter(entry => includes(to, storing(entry)) && !includes(before, storing(entry)))
        recent.add({ from: before, to, columns: COLUMNS, entries })
        before = to
      }
      for (const step of steps) {
        if (step === 'begin') open.push(next++)
        else if (step === 'read') read()
        else if (step === 'client') clients.push(now())
        else {
          const ended = step === 'commit first' ? open.shift() : open.pop()
          if (ended !== undefined) written.push(entryOf(ended))
        }
      }
      read()
      for (const client of clients) {
        const expected = written.filter(entry => includes(before, storing(entry)) && !includes(client, storing(entry)))
        expect(recent.since(client, TABLES)?.map(storing).toSorted()).toEqual(expected.map(storing).toSorted())
      }
    }),
  )
})

describe('the entries are not known', () => {
  const recent = createRecentEntries()
  recent.add({ from: at(10), to: at(20), columns: COLUMNS, entries: [entryOf(12), entryOf(13, 'public.other')] })
  test('before the first read and after the last one', () => {
    expect(recent.since(at(10), TABLES)).toHaveLength(1)
    expect(recent.since(at(9), TABLES)).toBeNull()
    expect(recent.since(at(11, [9]), TABLES)).toBeNull()
    expect(recent.since(at(20), TABLES)).toEqual([])
    expect(recent.since(at(21), TABLES)).toBeNull()
  })

  test('for a table that was not read, or with another routing column', () => {
    expect(recent.since(at(10), new Map([['public.u', null]]))).toBeNull()
    expect(recent.since(at(10), new Map([['public.t', 'owner']]))).toBeNull()
    expect(recent.since(at(10), new Map([['public.t', null]]))).toHaveLength(1)
  })

  test('beyond the limit, and after the list was cleared', () => {
    const limited = createRecentEntries()
    for (let n = 0; n < 11; n++) {
      const entries = Array.from({ length: RECENT_ENTRIES_MAX / 10 }, () => entryOf(n))
      limited.add({ from: at(n), to: at(n + 1), columns: COLUMNS, entries })
    }
    expect(limited.since(at(0), TABLES)).toBeNull()
    expect(limited.since(at(1), TABLES)).toHaveLength(RECENT_ENTRIES_MAX)
    limited.clear()
    expect(limited.since(at(1), TABLES)).toBeNull()
  })
})
