/**
 * A file that can change while the gateway runs: read at the start, and again on request
 * (docs/guides/deploying.md#start-reload-stop).
 */
import { AllowListError } from './list-file.ts'

export interface Reloaded<T> {
  current(): T
  /** Reads it again; what cannot be used leaves the old one in force. */
  reload(): Promise<void>
}

/**
 * Rejects when the file cannot be used at the start: a list that cannot be read is no reason to allow
 * everything. `onProblem` hears why it could not be used later.
 */
export async function createReloaded<T>(
  load: () => Promise<T>,
  onProblem: (message: string) => void,
): Promise<Reloaded<T>> {
  let value = await load()
  let last = Promise.resolve()
  const again = async () => {
    try {
      value = await load()
    } catch (error) {
      if (!(error instanceof AllowListError)) throw error
      onProblem(error.message)
    }
  }
  return {
    current: () => value,
    reload() {
      // One after the other: the file as it was read last is the one in force.
      const next = last.then(again)
      last = next.catch(() => {})
      return next
    },
  }
}
