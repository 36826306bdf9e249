/** Event triggers: which URL receives which changes of a table (docs/guides/webhooks.md#define-a-trigger). */

export const OPERATIONS = ['create', 'update', 'delete'] as const

export type Operation = (typeof OPERATIONS)[number]

/** What happened to a row, as a webhook's body says it. */
export type Happened = 'INSERT' | 'UPDATE' | 'DELETE'

/** `TEST`: nothing did; whoever runs the gateway wants to know whether a webhook arrives. */
export type Told = Happened | 'TEST'

export const OPERATION_OF: Readonly<Record<Happened, Operation>> = {
  INSERT: 'create',
  UPDATE: 'update',
  DELETE: 'delete',
}

export const HAPPENED = Object.keys(OPERATION_OF) as readonly Happened[]

export interface Trigger {
  readonly name: string
  /** As it is written: the resource's name, or `schema.table`. */
  readonly table: string
  readonly operations: readonly Operation[]
  readonly url: URL
  /** Tries after the first. */
  readonly retryCount: number
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly enabled: boolean
  /** The only ones in the payload; null for all. */
  readonly columns: readonly string[] | null
  /** Each signs; the receiver may know any of them. Empty: nothing is signed. */
  readonly secrets: readonly string[]
  readonly timeoutMs: number
  /** Whose changes: those that are made through a gateway, or all. */
  readonly source: Source
  readonly order: Order
}

export const SOURCES = ['gateway', 'database'] as const

export type Source = (typeof SOURCES)[number]

/** `key`: of one row, what happened first is told first, and the next when that has arrived or is given up. */
export const ORDERS = ['none', 'key'] as const

export type Order = (typeof ORDERS)[number]

/** Where it delivers to: what fails, is slow and has its share together. The path may be a secret. */
export function endpointOf({ url }: Pick<Trigger, 'url'>): string {
  return url.origin
}
