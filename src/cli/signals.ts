/** A service that runs until a signal stops it (docs/guides/deploying.md#start-reload-stop). */

export interface Running {
  close(): Promise<void>
  /** Called on SIGHUP. */
  reload?(): Promise<void>
  /** Rejects if the service ends by itself. */
  readonly failed?: Promise<never>
}

/** The part of `process` that this module uses: signals, and the immediate exit. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown
  off(signal: NodeJS.Signals, listener: () => void): unknown
  exit(code: number): unknown
}

/** A shell reports a process that was ended by a signal as 128 plus the number of the signal. */
const CODES = { SIGINT: 130, SIGTERM: 143 } as const
const STOPPING = ['SIGINT', 'SIGTERM'] as const

/**
 * Starts the service and resolves when it has been closed after the first SIGTERM or SIGINT. A second signal
 * exits immediately, as does the first while the service is still starting, because nothing is in flight
 * then. Rejects when the service fails to start or to close, or fails while running.
 */
export async function runUntilSignal(
  start: () => Promise<Running>,
  signals: SignalSource,
  report: (line: string) => void,
): Promise<void> {
  let stop: (() => void) | null = null
  const stopped = new Promise<void>(resolve => {
    stop = resolve
  })
  let running: Running | null = null
  let reloading = Promise.resolve()

  const onStop = STOPPING.map(signal => {
    const listener = (): void => {
      if (running === null || stop === null) signals.exit(CODES[signal])
      stop?.()
      stop = null
    }
    signals.on(signal, listener)
    return () => signals.off(signal, listener)
  })
  // Without a listener, SIGHUP would end the process. During startup there is nothing to reload.
  const onReload = (): void => {
    reloading = reloading
      .then(() => running?.reload?.())
      .catch((error: unknown) => report(`reload failed; the previous state stays in use: ${(error as Error).message}`))
  }
  signals.on('SIGHUP', onReload)
  try {
    running = await start()
    await (running.failed === undefined ? stopped : Promise.race([stopped, running.failed]))
    await running.close()
  } finally {
    for (const off of onStop) off()
    signals.off('SIGHUP', onReload)
  }
}
