/** A file that is written again and again while its content grows: whole each time, or as it was before. */
import { rename, rm, stat, writeFile } from 'node:fs/promises'
import { AllowListError } from './list-file.ts'

export interface Saver {
  /**
   * Resolves when the content of this moment is in the file. What comes while one write is under way is
   * written together after it.
   */
  save(): Promise<void>
}

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

/** Beside it first: who reads it meanwhile, or after a crash, finds a whole list. */
async function write(file: string, text: string): Promise<void> {
  const beside = `${file}.${process.pid}.new`
  try {
    const mode = await stat(file).then(
      found => found.mode & 0o777,
      () => 0o644,
    )
    await writeFile(beside, text, { mode })
    await rename(beside, file)
  } catch (error) {
    await rm(beside, { force: true })
    throw new AllowListError(`${file} cannot be written: ${(error as Error).message}`, { cause: error })
  }
}
