/**
 * `svc webhooks` (docs/reference/cli.md#svc-webhooks): lists a running gateway's webhooks, and redelivers or
 * deletes failed ones, through the gateway's HTTP routes.
 */
import { loadConfig } from '../config/load.ts'
import { UsageError } from './failure.ts'
import { gatewayAddress } from './gateway-address.ts'
import { oneLine } from './one-line.ts'
import { EXIT, type World } from './world.ts'

export interface WebhooksCommand {
  readonly config: string | undefined
  /** The URL of the gateway; undefined for the address in the configuration. */
  readonly url: string | undefined
  /** True to print the response unchanged. */
  readonly json: boolean
}

/** One dead letter, or all of them. */
export interface Letters {
  readonly id: string | undefined
  readonly all: boolean
}

/** `before` is the id of a dead letter: only deliveries given up before it are listed. */
export async function list(before: string | undefined, command: WebhooksCommand, world: World): Promise<number> {
  const answer = await ask(command, world, 'GET', '/internal/webhooks', before === undefined ? {} : { before })
  if (command.json) return print(answer, world)
  const { triggers, dead_letters: letters, dead_letter_count: count, queue, older_than: olderThan } = answer as Overview
  const rows = triggers.map(({ name, table, operations, endpoint, state, storage, queue: waits }) => [
    ...[name, state, table, operations.join(','), endpoint, storage],
    waits === null ? '' : String(waits.ready + waits.waiting + waits.in_flight),
  ])
  const heads = ['TRIGGER', 'STATE', 'TABLE', 'OPERATIONS', 'ENDPOINT', 'STORAGE', 'QUEUE']
  for (const line of columns([heads, ...rows])) world.out(line)
  world.out(
    `\n${queue.ready + queue.in_flight} ready or in flight, ${queue.waiting} waiting for a retry, ${count} dead`,
  )
  if (letters.length === 0) return EXIT.ok
  const dead = letters.map(({ id, trigger, given_up_at, reason }) => [id, trigger, given_up_at, oneLine(reason)])
  world.out('')
  for (const line of columns([['DEAD LETTER', 'TRIGGER', 'GIVEN UP', 'REASON'], ...dead])) world.out(line)
  if (olderThan !== null) world.out(`\nolder ones: svc webhooks list --before ${olderThan}`)
  return EXIT.ok
}

export async function show(id: string, command: WebhooksCommand, world: World): Promise<number> {
  return print(await ask(command, world, 'GET', '/internal/webhooks/dead-letter', { id }), world)
}

export async function redeliver(letters: Letters, command: WebhooksCommand, world: World): Promise<number> {
  return change(letters, 'redeliver', 'redelivered', command, world)
}

export async function purge(letters: Letters, command: WebhooksCommand, world: World): Promise<number> {
  return change(letters, 'purge', 'purged', command, world)
}

/** Sends a test message. Returns exit code 1 if it does not arrive. */
export async function test(trigger: string, command: WebhooksCommand, world: World): Promise<number> {
  const answer = await ask(command, world, 'POST', '/internal/webhooks/test', { trigger })
  const { outcome, message, id } = answer as Tested
  if (command.json) print(answer, world)
  else world.out(`${outcome}: ${oneLine(message)} (${id})`)
  return outcome === 'delivered' ? EXIT.ok : EXIT.failed
}

interface Overview {
  readonly triggers: readonly {
    readonly name: string
    readonly table: string
    readonly operations: readonly string[]
    readonly endpoint: string
    readonly state: string
    readonly storage: string
    /** The queue of the trigger; null if none of its deliveries is in the outbox. */
    readonly queue: { readonly ready: number; readonly waiting: number; readonly in_flight: number } | null
  }[]
  readonly queue: { readonly ready: number; readonly waiting: number; readonly in_flight: number }
  readonly dead_letter_count: number
  readonly older_than: string | null
  readonly dead_letters: readonly {
    readonly id: string
    readonly trigger: string
    readonly given_up_at: string
    readonly reason: string
  }[]
}

interface Tested {
  readonly outcome: string
  readonly message: string
  readonly id: string
}

async function change(
  { id, all }: Letters,
  what: 'redeliver' | 'purge',
  done: 'redelivered' | 'purged',
  command: WebhooksCommand,
  world: World,
): Promise<number> {
  if ((id === undefined) === !all) throw new UsageError(`svc webhooks ${what} takes the id of a dead letter, or --all`)
  const parameters: Record<string, string> = id === undefined ? { all: 'true' } : { id }
  const answer = (await ask(command, world, 'POST', `/internal/webhooks/${what}`, parameters)) as Record<string, number>
  const count = answer[done] ?? 0
  if (command.json) print(answer, world)
  else world.out(`${count} ${done}`)
  if (id === undefined || count > 0) return EXIT.ok
  world.error(`nothing was ${done}: dead letter ${id} does not exist, or its trigger or body no longer exists`)
  return EXIT.failed
}

/** The gateway did not respond successfully. */
class AskError extends Error {
  override readonly name = 'AskError'
}

/** Longer than one attempt to deliver a webhook. */
const TIMEOUT_MS = 90_000

async function ask(
  { config: file, url }: WebhooksCommand,
  world: World,
  method: 'GET' | 'POST',
  path: string,
  parameters: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const { config } = loadConfig({ ...world, file })
  if (config.adminToken === null) {
    throw new UsageError(
      'no admin token is configured: set SVC_ADMIN_TOKEN or [gateway] admin_token, here and for the gateway',
    )
  }
  const target = new URL(path, gatewayAddress(url, config))
  for (const [name, value] of Object.entries(parameters)) target.searchParams.set(name, value)
  const response = await fetch(target, {
    ...{ method, headers: { authorization: `Bearer ${config.adminToken}` }, redirect: 'error' },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: Error) => {
    const reason = error.cause instanceof Error ? error.cause.message : error.message
    throw new AskError(`no gateway responds at ${target.origin}: ${reason}; give its address with --url`)
  })
  const text = await response.text()
  if (response.ok) return JSON.parse(text)
  throw new AskError(`the gateway at ${target.origin} answered ${response.status}: ${messageOf(text)}`)
}

function messageOf(text: string): string {
  try {
    return (JSON.parse(text) as { readonly error: { readonly message: string } }).error.message
  } catch {
    return oneLine(text).slice(0, 200)
  }
}

function print(answer: unknown, world: World): number {
  world.out(JSON.stringify(answer, null, 2))
  return EXIT.ok
}

function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map(row => row[at]?.length ?? 0)))
  return rows.map(row =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
