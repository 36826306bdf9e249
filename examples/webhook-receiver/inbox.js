/**
 * What came, once each, on the disk: a file of lines, `{"id", "at", "event"}` for what came and `{"id", "done"}` for what was done. With a database, make it a
 * table whose key is the id, and let the work mark it done in its own transaction: here, work that a crash interrupts is done again.
 */
import { open, readFile, rename, writeFile } from 'node:fs/promises'

/** Longer than the gateway tries: 21 times, at most an hour apart, give or take a fifth. */
const REMEMBERED_MS = 3 * 24 * 3_600_000
const WAITING_MAX = 10_000

export async function openInbox(path, work) {
  /** By id, in the order they came: when, and a promise of its being on the disk. */
  const seen = new Map()
  const waiting = []
  let working = false
  let written = Promise.resolve()

  // What was there before: the old is forgotten, and with it the file grows shorter; the done is remembered, the rest is done now.
  const before = await readInbox(path)
  const lines = [...before.values()].map(entry => `${JSON.stringify(entry)}\n`)
  await writeFile(`${path}.new`, lines.join(''), { flush: true })
  await rename(`${path}.new`, path)
  const file = await open(path, 'a')
  for (const { id, at, event } of before.values()) {
    seen.set(id, { at, kept: written })
    if (event !== null) waiting.push({ id, event })
  }
  workOff()

  /** Resolves when the line is on the disk. One after the other, and on a line of its own, whatever became of the one before. */
  function write(line) {
    written = written
      .catch(() => {})
      .then(async () => {
        await file.appendFile(`\n${JSON.stringify(line)}\n`)
        await file.datasync()
      })
    return written
  }

  async function workOff() {
    if (working) return
    working = true
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        await work(next.event)
        await write({ id: next.id, done: true })
      } catch (error) {
        console.error(`${next.id} is tried again at the next start:`, error)
      }
    }
    working = false
  }

  return {
    /** Resolves to true once it is kept, now or before; to false while there is too much to do. Rejects when it cannot be kept. */
    async keep(id, event) {
      const known = seen.get(id)
      if (known === undefined && waiting.length >= WAITING_MAX) return false
      // One that comes again while the first is still being written waits for that.
      await (known ?? add(id, event)).kept
      return true
    },
  }

  function add(id, event) {
    const at = Date.now()
    for (const [old, { at: then }] of seen) {
      if (then > at - REMEMBERED_MS) break
      seen.delete(old)
    }
    const entry = { at, kept: write({ id, at, event }) }
    seen.set(id, entry)
    entry.kept.then(
      () => {
        waiting.push({ id, event })
        workOff()
      },
      // When it comes again, it is new.
      () => seen.delete(id),
    )
    return entry
  }
}

async function readInbox(path) {
  const entries = new Map()
  const text = await readFile(path, 'utf8').catch(error => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  for (const line of text.split('\n')) {
    const { id, at, event, done } = parse(line)
    if (done) entries.set(id, { ...entries.get(id), event: null })
    else if (at > Date.now() - REMEMBERED_MS) entries.set(id, { id, at, event })
  }
  return new Map([...entries].filter(([, { at }]) => at !== undefined))
}

/** Of a receiver that was killed, the last line may be half a line; it was not thanked for. */
function parse(line) {
  try {
    return JSON.parse(line)
  } catch {
    return {}
  }
}
