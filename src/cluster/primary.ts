/** The primary process: starts workers, replaces those that end, and carries messages between them. */
import cluster, { type Worker } from 'node:cluster'
import { randomBytes } from 'node:crypto'
import type { Config, GatewayConfig } from '../config/config.ts'
import { tooManyWorkers, workerCount } from '../config/worker-share.ts'
import type { Emit } from '../events.ts'
import { WorkerChannel } from './channel.ts'
import { redirectHandoffsOf } from './handoffs.ts'
import { type PrimaryMessage, parseWorkerMessage, type ReportName, type WorkerMessage } from './messages.ts'
import type { Gathered, WorkerStatus } from './peers.ts'
import { type Crashes, NO_CRASHES, nextRestart } from './restarts.ts'
import { createSharedImports, type SharedImports } from './shared-imports.ts'
import { createSharedLimits, type SharedLimits } from './shared-limits.ts'
import { createSharedReads } from './shared-reads.ts'
import type { WorkerAssignment } from './worker.ts'

/** Running workers behind one address. */
export interface Workers {
  readonly url: string
  /** Makes all workers read the schema and their files again. */
  reload(): Promise<void>
  /** Replaces the workers one after the other, by processes with the current configuration. */
  restart(): Promise<void>
  /** Stops all workers gracefully. */
  close(): Promise<void>
  /** Rejects with `CrashLoop` after the gateway has stopped because its workers kept ending. */
  readonly failed: Promise<never>
}

/** The dependencies of the primary process. */
export interface PrimaryParts {
  readonly config: Config
  /** Reads the configuration again, for a rolling restart. */
  readonly load: () => Config
  /** Adds the figures of workers that have ended; either can be null. */
  readonly addFigures: (one: unknown, other: unknown) => unknown
  /** The environment variables that mark a worker. */
  readonly environment: Readonly<Record<string, string>>
  readonly emit: Emit
}

/** The error when workers end soon after every start. */
export class CrashLoop extends Error {
  constructor(ended: string, times: number) {
    super(`${ended}, the ${times}th time in a row shortly after a start; the gateway stops`)
    this.name = 'CrashLoop'
  }
}

/** The error when the first workers did not start. The worker has printed the reason. */
export class WorkersNotStarted extends Error {
  readonly exitCode: number

  constructor(exitCode: number) {
    super('a worker could not start')
    this.name = 'WorkersNotStarted'
    this.exitCode = exitCode
  }
}

/** A worker that ends this much later than `drain_timeout_ms` is killed. */
const CLOSE_GRACE_MS = 8_000

/** A report that takes longer is left out. */
const REPORT_MS_MAX = 2_000

/** Time limit for a worker to return unused units; after it, the worker counts as using them. */
const SURRENDER_MS_MAX = 500

/**
 * Time limit for a worker to drop outdated results; after it, the worker is killed, because it could still
 * serve them. An overloaded worker refuses requests much earlier (limits/load.ts).
 */
const INVALIDATE_MS_MAX = 10_000

/** Settings that a rolling restart does not change, because the primary process applies them. */
const FIXED = [
  'bind',
  'workers',
  'rateLimitRate',
  'rateLimitBurst',
  'tenantMaxConcurrent',
  'maxClientConnections',
  'addressMaxClientConnections',
  'maxImports',
  'tenantMaxImports',
] as const satisfies readonly (keyof GatewayConfig)[]

/** The configuration of workers that replace others. Throws if the pool is too small for all of them. */
function restartedWith(next: Config, current: Config, count: number): Config {
  const problem = tooManyWorkers({ ...next.gateway, workers: count })
  if (problem !== null) throw new Error(`a gateway of ${count} workers ${problem}`)
  const fixed = Object.fromEntries(FIXED.map(key => [key, current.gateway[key]]))
  return { ...next, gateway: { ...next.gateway, ...fixed } }
}

interface Running {
  /** Never reused. */
  readonly id: number
  readonly number: number
  readonly process: Worker
  readonly channel: WorkerChannel<PrimaryMessage, WorkerMessage>
  readonly startedAt: number
  /** Null until the worker serves requests. */
  servingSince: number | null
  /** Resolves with the URL when the worker serves; rejects with `WorkersNotStarted` if it ends first. */
  readonly ready: Promise<string>
  readonly ended: Promise<void>
  state: 'starting' | 'serving' | 'retiring' | 'ended'
  /** True once the worker answers messages. Until then it has no results that could be outdated. */
  hasJoined: boolean
  /** The last metrics that the worker reported. */
  figures: unknown
}

/** Starts the workers; resolves when all of them listen. */
export async function startWorkers(parts: PrimaryParts): Promise<Workers> {
  const primary = new Primary(parts)
  await primary.start()
  return primary
}

class Primary implements Workers {
  readonly #parts: PrimaryParts
  readonly #count: number
  readonly #secret = randomBytes(32)
  readonly #limits: SharedLimits
  readonly #imports: SharedImports
  readonly #reads = createSharedReads(() => performance.now())
  readonly #running = new Map<number, Running>()
  readonly #restarts = new Map<number, number>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #config: Config
  #crashes: Crashes = NO_CRASHES
  #nextId = 0
  #isClosing = false
  #restarting: Promise<void> = Promise.resolve()
  #endedFigures: unknown = null
  #fail: (error: Error) => void = () => {}
  readonly failed: Promise<never>
  url = ''

  constructor(parts: PrimaryParts) {
    this.#parts = parts
    this.#config = parts.config
    this.#count = workerCount(parts.config.gateway)
    this.#limits = createSharedLimits({
      values: parts.config.gateway,
      now: () => performance.now(),
      seed: randomBytes(4).readUInt32LE(),
      processes: () => this.#count,
      surrender: (id, limit, holder) => this.#surrendered(id, { kind: 'surrender', limit, holder }),
    })
    this.#imports = createSharedImports(parts.config.gateway)
    this.failed = new Promise((_, reject) => {
      this.#fail = reject
    })
    // The promise can be rejected before it has a handler.
    this.failed.catch(() => {})
    cluster.setupPrimary({ serialization: 'advanced' })
  }

  async start(): Promise<void> {
    try {
      // The first worker starts alone, so that a mistake in the configuration is reported once.
      this.url = await this.#launch(1).ready
      const others = Array.from({ length: this.#count - 1 }, (_, index) => this.#launch(index + 2))
      await Promise.all(others.map(({ ready }) => ready))
    } catch (error) {
      await this.close()
      throw error
    }
    this.#parts.emit({ kind: 'listening', url: this.url })
  }

  async reload(): Promise<void> {
    for (const { channel } of this.#running.values()) channel.notify({ kind: 'reload' })
  }

  restart(): Promise<void> {
    this.#restarting = this.#restarting.then(() => this.#replaceAll())
    return this.#restarting
  }

  async close(): Promise<void> {
    this.#isClosing = true
    for (const timer of this.#timers) clearTimeout(timer)
    const running = [...this.#running.values()]
    for (const { channel } of running) channel.notify({ kind: 'stop' })
    const killing = setTimeout(() => {
      for (const { process } of running) process.process.kill('SIGKILL')
    }, this.#config.gateway.drainTimeoutMs + CLOSE_GRACE_MS)
    await Promise.all(running.map(({ ended }) => ended))
    clearTimeout(killing)
  }

  // --- the life of a worker ---

  /** A worker that serves requests, other than the one with this id; null without one. */
  #serving(id: number): Worker | null {
    const other = [...this.#running.values()].find(
      one => one.id !== id && one.state === 'serving' && one.process.isConnected(),
    )
    return other?.process ?? null
  }

  #launch(number: number): Running {
    const id = ++this.#nextId
    const process = cluster.fork(this.#parts.environment)
    redirectHandoffsOf(process, () => this.#serving(id))
    let isReady: (url: string) => void = () => {}
    let isNotReady: (error: Error) => void = () => {}
    let hasEnded: () => void = () => {}
    const ready = new Promise<string>((resolve, reject) => {
      isReady = resolve
      isNotReady = reject
    })
    ready.catch(() => {})
    const ended = new Promise<void>(resolve => {
      hasEnded = resolve
    })
    const channel = new WorkerChannel<PrimaryMessage, WorkerMessage>({
      port: {
        send: (frame, done) => void process.send(frame as object, undefined, done),
        receive: hear => void process.on('message', hear),
      },
      parse: parseWorkerMessage,
      // A message that cannot be handled must not end the process that all workers depend on.
      handle: async message => {
        try {
          return await this.#handle(running, message, isReady)
        } catch {
          return null
        }
      },
    })
    const running: Running = {
      ...{
        id,
        number,
        process,
        channel,
        ready,
        ended,
        startedAt: performance.now(),
        servingSince: null,
        hasJoined: false,
        state: 'starting',
        figures: null,
      },
    }
    this.#running.set(id, running)
    this.#parts.emit({ kind: 'worker', event: 'started', detail: { worker: number, pid: process.process.pid ?? 0 } })
    process.on('error', () => {})
    process.once('exit', (code: number | null, signal: string | null) => {
      this.#afterEnd(running, signal === null ? `exit code ${code}` : `signal ${signal}`)
      isNotReady(new WorkersNotStarted(code || 1))
      hasEnded()
    })
    return running
  }

  #afterEnd(running: Running, how: string): void {
    const { id, number, state, channel, figures, servingSince } = running
    running.state = 'ended'
    channel.close()
    this.#running.delete(id)
    this.#limits.drop(id)
    this.#imports.drop(id)
    this.#reads.drop(id)
    this.#endedFigures = this.#parts.addFigures(this.#endedFigures, figures)
    if (this.#isClosing || state === 'retiring' || this.url === '') return
    // If a replacement does not start, the worker that it would have replaced continues.
    if (this.#of(number) !== undefined) return
    this.#restarts.set(number, (this.#restarts.get(number) ?? 0) + 1)
    const { crashes, delayMs } = nextRestart(
      this.#crashes,
      servingSince === null ? 0 : performance.now() - servingSince,
    )
    this.#crashes = crashes
    this.#parts.emit({ kind: 'worker', event: 'ended', detail: { worker: number, how, restartInMs: delayMs } })
    if (delayMs === null) void this.#giveUp(`worker ${number} ended with ${how}`)
    else this.#later(delayMs, () => void this.#launch(number))
  }

  async #giveUp(ended: string): Promise<void> {
    await this.close()
    this.#fail(new CrashLoop(ended, this.#crashes.inARow))
  }

  #later(delayMs: number, call: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      call()
    }, delayMs)
    this.#timers.add(timer)
  }

  /** The current worker with this number: not the one that is being replaced. */
  #of(number: number): Running | undefined {
    return [...this.#running.values()].find(each => each.number === number && each.state !== 'retiring')
  }

  async #replaceAll(): Promise<void> {
    const { emit, load } = this.#parts
    try {
      this.#config = restartedWith(load(), this.#config, this.#count)
      for (let number = 1; number <= this.#count && !this.#isClosing; number++) await this.#replace(number)
      emit({ kind: 'worker', event: 'all replaced', detail: {} })
    } catch (error) {
      emit({ kind: 'worker', event: 'not replaced', detail: { error } })
    }
  }

  /** Starts the new worker before the old one stops accepting connections. */
  async #replace(number: number): Promise<void> {
    const before = this.#of(number)
    const next = this.#launch(number)
    await next.ready
    if (before === undefined || before.state === 'ended') return
    before.state = 'retiring'
    before.channel.notify({ kind: 'retire' })
    const killing = setTimeout(
      () => before.process.process.kill('SIGKILL'),
      2 * this.#config.gateway.drainTimeoutMs + CLOSE_GRACE_MS,
    )
    await before.ended
    clearTimeout(killing)
  }

  // --- messages ---

  #handle(from: Running, message: WorkerMessage, isReady: (url: string) => void): unknown {
    switch (message.kind) {
      case 'hello':
        from.hasJoined = true
        return {
          ...{ config: this.#config, number: from.number, count: this.#count, secret: this.#secret },
        } satisfies WorkerAssignment
      case 'ready':
        from.state = 'serving'
        from.servingSince = performance.now()
        this.#parts.emit({ kind: 'worker', event: 'serving', detail: { worker: from.number } })
        return isReady(message.url)
      case 'lease':
        return this.#lend(from, message)
      case 'return':
        return this.#limits.give(from.id, message.limit, message.holder, message.units)
      case 'exceed':
        return this.#limits.exceed(from.id, message.limit, message.holder, message.units)
      case 'enter':
        return this.#imports.enter(from.id, message.caller)
      case 'leave':
        return this.#imports.leave(from.id, message.caller)
      case 'changed':
      case 'wrote':
        return this.#pass(from, message)
      case 'gather':
        return this.#gather(message.report, message.argument)
      case 'turn':
        return this.#reads.turn(from.id, message.stream, message.from, message.unchangedMsMax)
      case 'step': {
        const { stream, to, value } = message
        const step = to === null ? null : { stream, from: message.from, to, value }
        return this.#reads.report(from.id, stream, message.from, step)
      }
      case 'figures':
        return this.#keepFigures(from, message.value)
    }
  }

  async #lend(from: Running, { limit, holder, units }: WorkerMessage & { kind: 'lease' }): Promise<number> {
    const lent = await this.#limits.lend(from.id, limit, holder, units)
    // The worker ended while the others were asked for units.
    if (from.state === 'ended') this.#limits.drop(from.id)
    return lent
  }

  async #surrendered(id: number, message: PrimaryMessage): Promise<number> {
    const value = await this.#request(id, message, SURRENDER_MS_MAX)
    return typeof value === 'number' ? value : 0
  }

  /** Passes a message about a write on. Resolves when every other worker has applied it, or has ended. */
  async #pass(from: Running, message: PrimaryMessage & { readonly kind: 'changed' | 'wrote' }): Promise<void> {
    const others = [...this.#running.values()].filter(each => each !== from && each.hasJoined)
    await Promise.all(others.map(other => this.#passTo(other, message)))
  }

  async #passTo(worker: Running, message: PrimaryMessage): Promise<void> {
    const killing = setTimeout(() => worker.process.process.kill('SIGKILL'), INVALIDATE_MS_MAX)
    await worker.channel.request(message).catch(() => {})
    clearTimeout(killing)
  }

  async #gather(report: ReportName, argument: string): Promise<Gathered> {
    const serving = [...this.#running.values()].filter(({ servingSince }) => servingSince !== null)
    if (report === 'health') return this.#gatherHealth(serving)
    const answers = await Promise.all(
      serving.map(async worker => {
        const value = await this.#request(worker.id, { kind: 'report', report, argument }, REPORT_MS_MAX)
        if (report !== 'metrics') return { number: worker.number, value }
        // Counters never decrease, even if a worker does not answer in time or has been killed.
        if (value !== null) this.#keepFigures(worker, value)
        return { number: worker.number, value: worker.figures }
      }),
    )
    return {
      reports: answers.filter(({ value }) => value !== null),
      ended: this.#endedFigures,
      workers: this.#status(),
    }
  }

  /** Figures that cannot be added are ignored: a worker of another version may report others. */
  #keepFigures(worker: Running, figures: unknown): void {
    try {
      this.#parts.addFigures(null, figures)
      worker.figures = figures
    } catch {
      // Those of its previous report remain.
    }
  }

  /** Resolves as soon as one worker is healthy, so that a slow one does not delay the answer. */
  async #gatherHealth(serving: readonly Running[]): Promise<Gathered> {
    const answers = serving.map(async ({ id, number }) => {
      const value = await this.#request(id, { kind: 'report', report: 'health', argument: '' }, REPORT_MS_MAX)
      if (value !== true) throw new Error('not healthy')
      return [{ number, value }]
    })
    const reports = await Promise.any(answers).catch(() => [])
    return { reports, ended: null, workers: this.#status() }
  }

  /** The report of a worker; null if it does not answer in time or has ended. */
  async #request(id: number, message: PrimaryMessage, msMax: number): Promise<unknown> {
    const worker = this.#running.get(id)
    if (worker === undefined) return null
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<null>(resolve => {
      timer = setTimeout(() => resolve(null), msMax)
    })
    const answer = worker.channel.request(message).catch(() => null)
    return Promise.race([answer, late]).finally(() => clearTimeout(timer))
  }

  #status(): readonly WorkerStatus[] {
    return [...this.#running.values()].flatMap(({ number, process, state, startedAt }) =>
      state === 'ended'
        ? []
        : [
            {
              ...{ number, pid: process.process.pid ?? 0, state },
              uptimeMs: performance.now() - startedAt,
              restarts: this.#restarts.get(number) ?? 0,
            },
          ],
    )
  }
}
