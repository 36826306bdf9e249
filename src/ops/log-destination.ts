/**
 * Where the lines of the log go: gathered and written a few times a second, one write at a time, never waited
 * for. A reader who does not read and a disk that is full cost lines, which are counted, and never time or
 * memory. (Pino's own destination tries a full disk again for ever, in a loop that nothing else of the
 * process gets through.)
 */
import { write } from 'node:fs'

export interface LogDestination {
  /** A line with its line break. */
  write(line: string): void
  /** Resolves when what was written so far has gone out, or cannot within `FLUSH_MS_MAX`. */
  flush(): Promise<void>
}

/** Characters gathered before a write: a busy gateway writes thousands of lines a second. */
const GATHERED_MAX = 8_192
const GATHER_MS = 200

/** Characters that wait for the write before them. Lines beyond are dropped. */
const WAITING_MAX = 4 * 1024 * 1024

/** A process that ends waits so long for its last lines. */
const FLUSH_MS_MAX = 1_000

/** A pipe that is full and does not block is tried again after this. */
const RETRY_MS = 20

export function createLogDestination(fd: number): LogDestination {
  let lines: string[] = []
  let waiting = 0
  let dropped = 0
  let writing = false
  let timer: NodeJS.Timeout | null = null
  const onIdle: (() => void)[] = []

  function gather(line: string): void {
    lines.push(line)
    waiting += line.length
    if (waiting >= GATHERED_MAX) writeOut()
    else timer ??= setTimeout(writeOut, GATHER_MS).unref()
  }

  function writeOut(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    if (writing) return
    if (lines.length === 0) {
      for (const idle of onIdle.splice(0)) idle()
      return
    }
    const bytes = Buffer.from(lines.join(''))
    const count = lines.length
    lines = []
    waiting = 0
    writing = true
    writeAll(fd, bytes, error => {
      writing = false
      if (error !== null) dropped += count
      else if (dropped > 0) {
        gather(
          `${JSON.stringify({ level: 40, time: new Date().toISOString(), msg: `${dropped} lines of the log were dropped` })}\n`,
        )
        dropped = 0
      }
      writeOut()
    })
  }

  return {
    write(line) {
      if (waiting + line.length > WAITING_MAX) dropped += 1
      else gather(line)
    },
    flush() {
      return new Promise(resolve => {
        const deadline = setTimeout(resolve, FLUSH_MS_MAX)
        onIdle.push(() => {
          clearTimeout(deadline)
          resolve()
        })
        writeOut()
      })
    },
  }
}

/** Writes on until all is out, or an error that trying again would not help. */
function writeAll(fd: number, bytes: Buffer, done: (error: Error | null) => void): void {
  write(fd, bytes, (error, written) => {
    if (error?.code === 'EAGAIN') {
      setTimeout(() => writeAll(fd, bytes, done), RETRY_MS).unref()
      return
    }
    if (error !== null || written === bytes.length) done(error)
    else writeAll(fd, bytes.subarray(written), done)
  })
}
