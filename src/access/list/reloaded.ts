/**
 * A file that can change while the gateway runs: it is read at startup and again on request
 * (docs/guides/deploying.md#start-reload-stop).
 */
import { AllowListError } from './list-file.ts'

/** The current value of a reloadable file. */
export interface Reloaded<T> {
  current(): T
  /** Reads the file again; an invalid file leaves the old value in force. */
  reload(): Promise<void>
}

/**
 * Rejects if the file is invalid at startup: an unreadable list must not allow everything. `onProblem`
 * receives the reason why a later reload failed.
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
      // Reloads run one after another, so the version read last is in force.
      const next = last.then(again)
      last = next.catch(() => {})
      return next
    },
  }
}
