/**
 * Stores every received event once on disk, in a file of lines: `{"id", "at", "event"}` for a received event
 * and `{"id", "done"}` for a processed one. With a database, use a table with the id as its key, and mark an
 * event as done in the transaction of its processing. With this file, processing interrupted by a crash is
 * repeated.
 */
import { open, readFile, rename, writeFile } from 'node:fs/promises'

/** Longer than the gateway retries: 21 attempts, at most an hour apart, plus or minus a fifth. */
const REMEMBERED_MS = 3 * 24 * 3_600_000
const WAITING_MAX = 10_000

export async function openInbox(path, work) {
  /** By id in order of arrival: the time, and a promise that resolves when the event is on disk. */
  const seen = new Map()
  const waiting = []
  let working = false
  let written = Promise.resolve()

  // Reads the stored events: expired ones are removed, which shortens the file; processed ones are
  // remembered; all others are processed now.
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

  /**
   * Resolves when the line is on disk. Lines are written in sequence, each complete, even if the one before
   * failed.
   */
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
    /**
     * Resolves to true once the event is stored, now or earlier; to false while too many events wait. Rejects
     * if it cannot be stored.
     */
    async keep(id, event) {
      const known = seen.get(id)
      if (known === undefined && waiting.length >= WAITING_MAX) return false
      // A repeated event that arrives while the first is being written waits for it.
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
      // The next attempt counts as new.
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

/** If the receiver was killed, the last line can be incomplete; that event was not acknowledged. */
function parse(line) {
  try {
    return JSON.parse(line)
  } catch {
    return {}
  }
}
