/**
 * A file that is rewritten repeatedly while its content grows: readers see either the new version or the
 * old one, each complete.
 */
import { rename, rm, stat, writeFile } from 'node:fs/promises'
import { AllowListError } from './list-file.ts'

/** Writes the current content to the file. */
export interface Saver {
  /** Resolves when the current content is in the file. Calls during a write share the write after it. */
  save(): Promise<void>
}

/** A saver for `file`; `content` returns the text at the time of each write. */
export function createSaver(file: string, content: () => string): Saver {
  let last = Promise.resolve()
  let waiting: Promise<void> | null = null
  return {
    save() {
      waiting ??= last
        .catch(() => {})
        .then(() => {
          waiting = null
          return write(file, content())
        })
      last = waiting
      return waiting
    },
  }
}

/**
 * Writes a temporary file and renames it, so a concurrent reader, or one after a crash, finds a complete
 * list.
 */
async function write(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}.new`
  try {
    const mode = await stat(file).then(
      found => found.mode & 0o777,
      () => 0o644,
    )
    await writeFile(temporary, text, { mode })
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw new AllowListError(`${file} cannot be written: ${(error as Error).message}`, { cause: error })
  }
}
