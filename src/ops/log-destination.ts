/**
 * Writes log lines in batches a few times a second, one write at a time, without blocking. If the reader does
 * not read or the disk is full, lines are dropped and counted; they cost neither time nor memory. (Pino's own
 * destination retries endlessly on a full disk, in a loop that blocks the process.)
 */
import { write } from 'node:fs'

/** A destination of log lines. */
export interface LogDestination {
  /** Writes a line with its line break. */
  write(line: string): void
  /** Resolves when everything written so far has been output, or after `FLUSH_MS_MAX`. */
  flush(): Promise<void>
}

/** Characters collected before a write: a busy gateway writes thousands of lines per second. */
const GATHERED_MAX = 8_192
const GATHER_MS = 200

/** Limit on the characters that wait for the previous write. Lines above it are dropped. */
const WAITING_MAX = 4 * 1024 * 1024

/** Time that a process waits for its last lines before it exits. */
const FLUSH_MS_MAX = 1_000

/** Delay before another write to a full non-blocking pipe. */
const RETRY_MS = 20

/**
 * Creates a destination that writes to an open file or pipe. A single write has at most `bytesMax`, except
 * for a longer line.
 */
export function createLogDestination(fd: number, bytesMax: number = Number.POSITIVE_INFINITY): LogDestination {
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
    const written = bytesMax === Number.POSITIVE_INFINITY ? lines : linesWithin(lines, bytesMax)
    const bytes = Buffer.from(written.join(''))
    const count = written.length
    lines = lines.slice(count)
    for (const line of written) waiting -= line.length
    writing = true
    writeAll(fd, bytes, error => {
      writing = false
      if (error !== null) dropped += count
      else if (dropped > 0) {
        gather(
          `${JSON.stringify({
            ...{ level: 40, time: new Date().toISOString() },
            msg: `${dropped} lines of the log were dropped`,
          })}\n`,
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

/** The first lines that have at most `bytesMax` together; at least one. */
function linesWithin(lines: readonly string[], bytesMax: number): readonly string[] {
  let bytes = 0
  const over = lines.findIndex((line, index) => {
    bytes += Buffer.byteLength(line)
    return bytes > bytesMax && index > 0
  })
  return over === -1 ? lines : lines.slice(0, over)
}

/** Writes everything, or stops at an error that a retry would not fix. */
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
