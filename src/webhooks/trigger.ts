/**
 * Event triggers: the changes of a table that are sent to a URL (docs/guides/webhooks.md#define-a-trigger).
 */

/** Operations as written in the events file. */
export const TRIGGER_OPERATIONS = ['create', 'update', 'delete'] as const

export type TriggerOperation = (typeof TRIGGER_OPERATIONS)[number]

/** An operation on a row, as it appears in a webhook's body. */
export type RowOperation = 'INSERT' | 'UPDATE' | 'DELETE'

/** The operation in a body. `TEST`: a test message sent by an operator. */
export type PayloadOperation = RowOperation | 'TEST'

/** The events file's word for each row operation. */
export const TRIGGER_OPERATION_OF: Readonly<Record<RowOperation, TriggerOperation>> = {
  INSERT: 'create',
  UPDATE: 'update',
  DELETE: 'delete',
}

/** All row operations. */
export const ROW_OPERATIONS = Object.keys(TRIGGER_OPERATION_OF) as readonly RowOperation[]

/** The row operations that a trigger listens to. */
export function rowOperationsOf({ operations }: Pick<Trigger, 'operations'>): readonly RowOperation[] {
  return ROW_OPERATIONS.filter(operation => operations.includes(TRIGGER_OPERATION_OF[operation]))
}

/** A trigger as defined in the events file. */
export interface Trigger {
  readonly name: string
  /** The table as written in the file: the resource's name, or `schema.table`. */
  readonly table: string
  readonly operations: readonly TriggerOperation[]
  readonly url: URL
  /** Retries after the first attempt. */
  readonly retryCount: number
  /** Additional headers, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly enabled: boolean
  /** The columns included in bodies; null includes all. */
  readonly columns: readonly string[] | null
  /** Secrets to sign with; the receiver needs to know one of them. Empty: requests are not signed. */
  readonly secrets: readonly string[]
  readonly timeoutMs: number
  /** True if only changes made through a gateway are sent, or all changes. */
  readonly source: TriggerSource
  readonly order: TriggerOrder
}

/** Which changes are sent. */
export const TRIGGER_SOURCES = ['gateway', 'database'] as const

export type TriggerSource = (typeof TRIGGER_SOURCES)[number]

/**
 * The order of deliveries. `key`: changes to one row are delivered in order; each waits until the previous
 * one is delivered or given up.
 */
export const TRIGGER_ORDERS = ['none', 'key'] as const

export type TriggerOrder = (typeof TRIGGER_ORDERS)[number]

/**
 * The endpoint of a trigger. Limits and failures are tracked per endpoint. It omits the path, which can be a
 * secret.
 */
export function endpointOf({ url }: Pick<Trigger, 'url'>): string {
  return url.origin
}
