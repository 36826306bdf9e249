/**
 * Serves shapes (docs/guides/shapes.md): the rows of a table that a caller can see, then their changes, over
 * the HTTP protocol of Electric. Every request is a subscription of the hub that ends with its response, so
 * a shape has no state: rows are read by SELECT under the caller's settings, and changes from the
 * change log since the offset of the request.
 */
import { randomInt } from 'node:crypto'
import type { Catalog, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import { type Budget, callerKey, createBudget } from '../limits/budget.ts'
import type { Hub, Subscription } from '../realtime/hub.ts'
import type { SubscriptionPlan, TextPart } from '../realtime/subscription-plan.ts'
import { createWaitingBytes, type UnreadBudget } from '../realtime/waiting-bytes.ts'
import { methodNotAllowed } from '../rest/method.ts'
import type { RequestLimits } from '../rest/request.ts'
import type { ResultRow, Runner } from '../run/run.ts'
import { printColumnSchema } from './column-schema.ts'
import { digestOf, offsetOf, parseHandle, printSnapshot, tokenOf } from './position.ts'
import {
  forMethod,
  isShapeUnchanged,
  mustRefetch,
  notModifiedRows,
  optionsAnswer,
  type ShapeOutcome,
  shapeHeaders,
  shapeMethods,
  subsetHeaders,
} from './shape-answers.ts'
import { createShapeHandles, type ShapeHandles, type ShapeStart } from './shape-handles.ts'
import { createMessagePrinter, type MessagePrinter, printSnapshotEnd, printUpToDate } from './shape-messages.ts'
import { nameShape } from './shape-names.ts'
import { createPoll, type Poll } from './shape-poll.ts'
import { ShapeProblem } from './shape-problem.ts'
import {
  parseShapeDeletion,
  parseShapeRequest,
  requestedRows,
  type ShapeDefinition,
  type ShapeRequest,
} from './shape-request.ts'
import { type ShapeSubset, subsetPart } from './shape-subset.ts'

/** Limit on the duration of a stream of events; the client then opens the next one. */
const EVENTS_MS_MAX = 60_000

/** Interval of comments that show proxies and clients that the stream is alive. */
const KEEP_ALIVE_MS = 15_000

/** Numbers that identify responses with a subset are below this one. */
const MARK_MAX = 2 ** 31

const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')

/** The dependencies of shapes. */
export interface ShapesParts extends RequestLimits {
  readonly path: string
  readonly longPollMs: number
  /** True if a caller can end a handle, which it shares with all callers that see the same rows. */
  readonly allowDeletion: boolean
  readonly maxInValues: number
  /** Limit on the requests of one tenant that wait for changes; 0 for none. */
  readonly tenantMaxWaitingShapes: number
  readonly hub: Pick<Hub, 'subscribe'>
  readonly catalog: () => Catalog
  /** Runs the reads of initial syncs, with the tenant's limits. */
  readonly runner: Pick<Runner, 'stream'>
  readonly unread: UnreadBudget
  /** Milliseconds since 1970. */
  readonly clock: () => number
}

/** Figures of shapes. */
export interface ShapesStats {
  /** Number of requests that wait for a change. */
  readonly shapesWaiting: number
  /** Number of requests that were refused because too many of their tenant wait. */
  readonly shapesRefused: number
  /** Number of clients that were asked to start again. */
  readonly shapeRefetches: number
}

/** An open shape: its subscription, and what its messages and handles need. */
interface OpenShape {
  readonly shape: ShapeDefinition
  readonly subscription: Subscription
  readonly poll: Poll
  readonly digest: string
  readonly printer: MessagePrinter
  readonly schema: string
  /** Ends the subscription, and drops what it has delivered. */
  end(): void
}

/** The request of a stream of events. `leave`: gives its place back. */
interface EventStream {
  readonly incoming: Incoming
  readonly identity: Identity
  readonly leave: () => void
}

/** The route of shapes. */
export class Shapes {
  readonly path: string
  readonly methods: readonly string[]
  readonly #parts: ShapesParts
  readonly #handles: ShapeHandles
  readonly #waiting = new Map<Poll, Identity>()
  readonly #places: Budget<string | null>
  #refetches = 0
  #isLeaving = false

  constructor(parts: ShapesParts) {
    this.path = parts.path
    this.methods = shapeMethods(parts.allowDeletion)
    this.#parts = parts
    this.#handles = createShapeHandles(parts.clock)
    this.#places = createBudget({ max: 0, shareMax: parts.tenantMaxWaitingShapes })
  }

  /**
   * Answers a request.
   * @throws ShapeProblem or GatewayError, as a rejection.
   */
  async answer(incoming: Incoming, identity: Identity): Promise<Answer> {
    switch (incoming.method) {
      case 'GET':
      case 'HEAD':
      case 'POST':
        return forMethod(incoming, await this.#read(incoming, identity))
      case 'DELETE':
        if (!this.#parts.allowDeletion) throw methodNotAllowed(incoming, this.methods)
        return this.#delete(incoming, identity)
      case 'OPTIONS':
        return optionsAnswer(this.methods)
      default:
        throw methodNotAllowed(incoming, this.methods)
    }
  }

  stats(): ShapesStats {
    return {
      shapesWaiting: this.#waiting.size,
      shapesRefused: this.#places.refusals.share,
      shapeRefetches: this.#refetches,
    }
  }

  /** Answers all waiting requests, because the gateway stops. */
  leave(): void {
    this.#isLeaving = true
    for (const poll of this.#waiting.keys()) poll.end()
  }

  /** Ends the requests of revoked tokens. */
  revoke(isRevoked: (identity: Identity) => boolean): void {
    for (const [poll, identity] of this.#waiting) if (isRevoked(identity)) poll.end()
  }

  // --- requests ---

  async #read(incoming: Incoming, identity: Identity): Promise<Answer> {
    const request = parseShapeRequest(incoming.query, incoming.method === 'POST' ? incoming.body : null, this.#parts)
    const handle = request.handle === null ? null : parseHandle(request.handle)
    const isSubset = request.subset !== null
    const since = handle === null || isSubset ? null : tokenOf(handle, request.offset)
    const leave = request.live === 'no' ? () => {} : this.#place(identity)
    let open: OpenShape | null = null
    let isHeld = false
    try {
      open = await this.#open(request, identity, since)
      if (request.subset !== null) return this.#subset(request, request.subset, open, incoming, identity)
      if (request.handle === null) {
        return this.#start(request, open, incoming, identity)
      }
      if (since === null || handle?.digest !== open.digest || this.#handles.hasEnded(request.handle))
        return this.#refetch(request.handle, open, identity)
      open.subscription.start()
      if (open.poll.isLost) return this.#refetch(request.handle, open, identity)
      if (request.live === 'events') {
        isHeld = incoming.method === 'GET'
        return this.#stream(request, request.handle, open, { incoming, identity, leave })
      }
      return await this.#changes(request, request.handle, open, incoming, identity)
    } finally {
      if (!isHeld) {
        leave()
        open?.end()
      }
    }
  }

  /**
   * Counts a request that waits for changes, because each has a connection. Returns a function that ends it.
   * @throws GatewayError if too many of the tenant wait.
   */
  #place(identity: Identity): () => void {
    const places = this.#places
    const holder = callerKey(identity)
    if (places.exceeded(holder) !== null) {
      places.refuse('share')
      const whose = identity.tenantId === '' ? 'this caller' : 'the tenant'
      throw new GatewayError(
        'CONCURRENCY_LIMIT',
        `${whose} already has ${this.#parts.tenantMaxWaitingShapes} requests for shapes that wait for changes, ` +
          'the limit (tenant_max_waiting_shapes); close some, or try again later',
        { headers: { 'Retry-After': '5' } },
      )
    }
    places.take(holder, 1)
    return () => places.give(holder, 1)
  }

  /** Subscribes to the shape; `since` is null for a request that starts. */
  async #open(
    { shape: written, live }: Pick<ShapeRequest, 'shape' | 'live'>,
    identity: Identity,
    since: string | null,
  ): Promise<OpenShape> {
    const { hub, catalog, maxInValues } = this.#parts
    // One change wakes all clients of a shape at once.
    const poll = createPoll(createWaitingBytes(this.#parts.unread, callerKey(identity)))
    const { shape, resource: table } = nameShape(catalog(), written)
    assertQueryable(shape)
    const texts = requestedRows(shape, maxInValues)
    // A stream of events cannot be continued from the end of a part.
    const catchUp = live === 'events' ? ('whole' as const) : ('part' as const)
    // A request that does not wait is answered with everything that was committed before it.
    const reach = live === 'no' ? ('now' as const) : ('the last read' as const)
    const request = { table, filter: '', select: undefined, texts, since, catchUp, reach }
    const subscription = await hub.subscribe(request, identity, poll.receiver).catch(error => {
      throw problemOf(error, shape, catalog().tables.get(table))
    })
    const end = () => {
      subscription.end()
      poll.discard()
    }
    try {
      const { plan, context } = subscription
      assertCaptured(subscription, shape.table)
      assertReadable(subscription)
      assertKey(shape, plan.table.primaryKey, plan.textColumns)
      const { schema, name, primaryKey } = plan.table
      const columnSchema = printColumnSchema(plan.table, plan.textColumns)
      return {
        ...{ shape, subscription, poll, schema: columnSchema, end },
        digest: digestOf(context, shape.replica, columnSchema),
        printer: createMessagePrinter({
          ...{ schema, name, primaryKey, replica: shape.replica },
          columns: plan.textColumns,
        }),
      }
    } catch (error) {
      end()
      throw error
    }
  }

  /** The first response of a shape: its rows, or the current position. */
  async #start(request: ShapeRequest, open: OpenShape, incoming: Incoming, identity: Identity): Promise<Answer> {
    const { plan, startToken } = open.subscription
    const handle = this.#handles.after(request.expiredHandle, startOf(open, startToken, identity))
    const isEmpty = request.offset === 'now'
    const headers = this.#headers(open, identity, {
      ...{ request, handle, offset: offsetOf(startToken) },
      upToDate: isEmpty ? 'without changes' : null,
    })
    if (isEmpty) return answerWith(headers, [printUpToDate(startToken)])
    if (isShapeUnchanged(headers, incoming)) return notModifiedRows(headers)
    if (!request.hasRows) return answerWith(headers, [])
    const { runner } = this.#parts
    const rows = () => runner.stream(identity, plan.stream(), incoming.usage.worked)
    const frame = { start: '[', last: printSnapshotEnd(startToken), end: ']' }
    return { status: 200, headers, body: await beginRows(rows, open.printer.row, frame, incoming) }
  }

  /**
   * The response with a subset and the snapshot in which it was read. The client ignores changes to these
   * rows that the snapshot includes. Its position does not change.
   */
  async #subset(
    { handle, offset }: ShapeRequest,
    subset: ShapeSubset,
    open: OpenShape,
    incoming: Incoming,
    identity: Identity,
  ): Promise<Answer> {
    const { runner, maxInValues } = this.#parts
    const { shape, subscription } = open
    const { plan, startToken } = subscription
    const isSame = handle === null || parseHandle(handle)?.digest === open.digest
    if (handle !== null && (!isSame || this.#handles.hasEnded(handle))) return this.#refetch(handle, open, identity)
    const statement = planPart(plan, subsetPart(subset, shape, maxInValues))
    const headers = subsetHeaders(
      handle ?? this.#handles.current(startOf(open, startToken, identity)),
      handle === null ? offsetOf(startToken) : offset,
      open.schema,
    )
    const mark = randomInt(MARK_MAX)
    const rows = () => runner.stream(identity, statement, incoming.usage.worked)
    const metadata = JSON.stringify({ ...printSnapshot(startToken), snapshot_mark: mark })
    const frame = { start: `{"metadata":${metadata},"data":[`, last: null, end: ']}' }
    const print = (row: string) => open.printer.markedRow(row, mark)
    return { status: 200, headers, body: await beginRows(rows, print, frame, incoming) }
  }

  /** The changes since the request's position; a live request waits for one, while its token is valid. */
  async #changes(
    request: ShapeRequest,
    handle: string,
    open: OpenShape,
    incoming: Incoming,
    identity: Identity,
  ): Promise<Answer> {
    const { poll, printer, subscription } = open
    const { isCaughtUp } = subscription
    const endsAt = performance.now() + Math.min(this.#parts.longPollMs, this.#validMs(identity))
    let token = subscription.reachedToken
    let messages: readonly string[] = []
    const take = () => {
      for (const { notifications, token: after } of poll.take()) {
        messages = [...messages, ...printer.changes(notifications)]
        if (!subscription.awaitsResync()) token = after
      }
    }
    take()
    if (request.live !== 'no' && isCaughtUp && incoming.method === 'GET') {
      await this.#held(poll, identity, incoming, async () => {
        for (let leftMs = 1; messages.length === 0 && !poll.isOver && leftMs > 0; take()) {
          leftMs = endsAt - performance.now()
          await poll.wait(Math.max(0, leftMs))
        }
      })
    }
    if (poll.error !== null) throw poll.error
    if (poll.isLost) return this.#refetch(handle, open, identity)
    if (poll.refusal !== null && messages.length === 0) throw poll.refusal
    if (messages.length === 0 && !poll.isOver) token = subscription.settledToken() ?? token
    const isPart = !isCaughtUp || poll.isFull
    if (!isCaughtUp && !poll.isFull) token = subscription.reachedToken
    const some = messages.length === 0 ? 'without changes' : 'with changes'
    const headers = this.#headers(open, identity, {
      ...{ request, handle, offset: offsetOf(token) },
      upToDate: isPart ? null : some,
    })
    return answerWith(headers, isPart ? messages : [...messages, printUpToDate(token)])
  }

  /** Sends changes as they occur. */
  #stream(request: ShapeRequest, handle: string, open: OpenShape, stream: EventStream): Answer {
    const headers = this.#headers(open, stream.identity, {
      ...{ request, handle, offset: request.offset },
      upToDate: 'without changes',
    })
    return { status: 200, headers, body: this.#events(open, stream) }
  }

  async *#events({ poll, printer, subscription, end }: OpenShape, { incoming, identity, leave }: EventStream) {
    const endsAt = performance.now() + Math.min(EVENTS_MS_MAX, this.#validMs(identity))
    const release = this.#hold(poll, identity, incoming)
    let reached = subscription.reachedToken
    try {
      // Sends the head of the response.
      yield KEEP_ALIVE
      while (!poll.isOver) {
        const leftMs = endsAt - performance.now()
        await poll.wait(Math.max(0, Math.min(KEEP_ALIVE_MS, leftMs)))
        const deliveries = poll.take()
        const messages = deliveries.flatMap(({ notifications }) => printer.changes(notifications))
        const last = deliveries.at(-1)?.token ?? (poll.isOver ? null : subscription.settledToken())
        // Without changes, the stream sends newer positions, so that the client does not continue from an old
        // one.
        const isLater = last !== null && last !== reached && !subscription.awaitsResync()
        if (isLater) reached = last
        if (isLater || messages.length > 0) yield printEvents([...messages, printUpToDate(reached)])
        else yield KEEP_ALIVE
        if (leftMs <= 0) return
      }
    } finally {
      release()
      leave()
      end()
    }
  }

  async #delete(incoming: Incoming, identity: Identity): Promise<Answer> {
    const { shape, handle } = parseShapeDeletion(incoming.query, this.#parts)
    const open = await this.#open({ shape, live: 'no' }, identity, null)
    open.end()
    const ended = handle ?? this.#handles.current(startOf(open, open.subscription.startToken, identity))
    if (parseHandle(ended)?.digest !== open.digest) throw new ShapeProblem('handle', 'is not a handle of this shape')
    this.#handles.end(ended)
    return { status: 202, headers: { 'Cache-Control': 'no-store' }, body: null }
  }

  // --- parts of responses ---

  #refetch(handle: string, open: OpenShape, identity: Identity): Answer {
    this.#refetches++
    const next = this.#handles.after(handle, startOf(open, open.subscription.reachedToken, identity))
    return mustRefetch(next, { isPublic: isPublic(identity) })
  }

  #headers(
    { schema }: OpenShape,
    identity: Identity,
    outcome: Pick<ShapeOutcome, 'request' | 'handle' | 'offset' | 'upToDate'>,
  ): Record<string, string> {
    const { longPollMs, clock } = this.#parts
    return shapeHeaders({ ...outcome, schema, longPollMs, now: clock(), isPublic: isPublic(identity) })
  }

  /** The time for which the caller's token is valid. */
  #validMs({ expiresAt }: Identity): number {
    return expiresAt === null ? Number.POSITIVE_INFINITY : expiresAt * 1_000 - this.#parts.clock()
  }

  async #held(poll: Poll, identity: Identity, incoming: Incoming, work: () => Promise<void>): Promise<void> {
    const release = this.#hold(poll, identity, incoming)
    try {
      await work()
    } finally {
      release()
    }
  }

  /** Counts a waiting request; it ends when the client disconnects or the gateway stops. */
  #hold(poll: Poll, identity: Identity, incoming: Incoming): () => void {
    this.#waiting.set(poll, identity)
    incoming.onAbort(poll.end)
    if (this.#isLeaving) poll.end()
    return () => this.#waiting.delete(poll)
  }
}

function startOf({ digest }: OpenShape, token: string, identity: Identity): ShapeStart {
  return { digest, token, owner: callerKey(identity) }
}

/** True if the caller has no identity, so that shared caches can give the response to others. */
function isPublic({ source }: Identity): boolean {
  return source === 'anonymous'
}

function printEvents(messages: readonly string[]): Buffer {
  return Buffer.from(messages.map(message => `data: ${message}\n\n`).join(''))
}

function answerWith(headers: Record<string, string>, messages: readonly string[]): Answer {
  return { status: 200, headers, body: Buffer.from(`[${messages.join(',\n')}]`) }
}

/** The texts around the rows of a response; `last` is the message after the rows. */
interface RowsFrame {
  readonly start: string
  readonly last: string | null
  readonly end: string
}

/**
 * Begins the body of a response with rows; null for HEAD, which reads none. The first batch is awaited before
 * the status is sent, so that an error until then has its own status.
 */
async function beginRows(
  read: () => ReturnType<Runner['stream']>,
  print: (row: string) => string,
  frame: RowsFrame,
  incoming: Incoming,
): Promise<AsyncGenerator<Buffer> | null> {
  if (incoming.method === 'HEAD') return null
  const batches = read()
  incoming.onAbort(() => void batches.return?.())
  return printRows(await batches.next(), batches, print, frame)
}

async function* printRows(
  first: IteratorResult<readonly ResultRow[]>,
  batches: AsyncIterableIterator<readonly ResultRow[]>,
  print: (row: string) => string,
  frame: RowsFrame,
): AsyncGenerator<Buffer> {
  let separator = frame.start
  try {
    for (let next = first; next.done !== true; next = await batches.next()) {
      const batch = next.value
      if (batch.length === 0) continue
      const messages = batch.map(([row]) => print(row?.toString() ?? '{}'))
      yield Buffer.from(`${separator}${messages.join(',\n')}`)
      separator = ',\n'
    }
    const isEmpty = separator === frame.start
    const last = frame.last === null ? (isEmpty ? separator : '') : `${separator}${frame.last}`
    yield Buffer.from(`${last}${frame.end}`)
  } finally {
    await batches.return?.()
  }
}

/** Converts the error of an invalid request to a problem of the parameter that caused it. */
function problemOf(error: unknown, { where, columns }: ShapeDefinition, table: Table | undefined): unknown {
  if (!(error instanceof GatewayError) || (error.status !== 400 && error.code !== 'NOT_FOUND')) return error
  if (error.code === 'NOT_FOUND' || table === undefined) return new ShapeProblem('table', error.message)
  const isColumn = columns?.every(name => table.columnByName.has(name)) === false
  return new ShapeProblem(isColumn ? 'columns' : where === null ? 'table' : 'where', error.message)
}

/**
 * Plans the read of a subset.
 * @throws ShapeProblem if it is invalid.
 */
function planPart({ streamPart }: SubscriptionPlan, part: TextPart): ReturnType<SubscriptionPlan['streamPart']> {
  try {
    return streamPart(part)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.status !== 400) throw error
    throw new ShapeProblem('subset__where', error.message)
  }
}

/** @throws ShapeProblem if changes that others make would be missed. */
function assertCaptured({ capture, uncaptured }: Subscription, table: string): void {
  const missing = capture === 'trigger' ? uncaptured : [table, ...uncaptured]
  if (missing.length === 0) return
  throw new ShapeProblem(
    'table',
    `changes to ${missing.map(name => `"${name}"`).join(', ')} are not captured; run "svc install" for them`,
  )
}

/** @throws GatewayError if the position in the change log is unknown, because reading it took too long. */
function assertReadable({ startToken, reachedToken }: Subscription): void {
  if (startToken !== '' && reachedToken !== '') return
  throw new GatewayError('UNAVAILABLE', 'the gateway cannot receive changes at the moment; try again later')
}

/** @throws ShapeProblem if a column of the shape is not queryable. */
function assertQueryable({ columns, queryable }: ShapeDefinition): void {
  const other = columns?.find(name => queryable?.includes(name) === false)
  if (other !== undefined) throw new ShapeProblem('columns', `"${other}" is not one of the queryable_columns`)
}

/** @throws ShapeProblem if rows could not be identified by the columns of the shape. */
function assertKey({ columns }: ShapeDefinition, primaryKey: readonly string[], readable: readonly string[]): void {
  const missing = primaryKey.filter(name => !readable.includes(name))
  if (missing.length === 0) return
  const given = columns === null ? 'are not readable' : 'must be among the columns'
  throw new ShapeProblem('columns', `The primary key columns (${missing.join(', ')}) ${given}`)
}
