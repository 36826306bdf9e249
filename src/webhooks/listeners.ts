/**
 * The triggers that receive a write, by the way their deliveries are stored. Computed once for each table and
 * kind of write, and again after the triggers or the installation have changed.
 */
import type { Table } from '../catalog/model.ts'
import { type RowOperation, TRIGGER_OPERATION_OF, type Trigger } from './trigger.ts'
import type { Triggers } from './triggers.ts'

/** Names of the triggers that receive a write. */
export interface WebhookListeners {
  /** Triggers whose deliveries are kept in memory. */
  readonly memory: readonly string[]
  /** Triggers whose deliveries the capture of the table stores in the database. */
  readonly outbox: readonly string[]
}

/** The inputs of the index of listeners. */
export interface ListenerIndexParts {
  readonly triggers: Pick<Triggers, 'on' | 'isStored' | 'generation'>
}

/** Cached results for one table. */
interface TableListeners {
  /** The generation of the triggers that this was computed for. */
  readonly generation: number
  /** Listeners by the operations that the write may perform. */
  readonly byOperations: Map<string, WebhookListeners>
}

/** Finds the triggers that receive the writes to a table. */
export class ListenerIndex {
  readonly #parts: ListenerIndexParts
  readonly #known = new WeakMap<Table, TableListeners>()

  constructor(parts: ListenerIndexParts) {
    this.#parts = parts
  }

  /** The triggers that receive a write. Called for every write. */
  listeners(table: Table, operations: readonly RowOperation[]): WebhookListeners {
    const cached = this.#cachedFor(table)
    const key = operations.length === 1 ? (operations[0] ?? '') : operations.join()
    const found = cached.byOperations.get(key)
    if (found !== undefined) return found
    const made = this.#computeListeners(table, operations)
    cached.byOperations.set(key, made)
    return made
  }

  /** True if a trigger depends on the gateway to report the write. */
  needsGateway(table: Table, operations: readonly RowOperation[]): boolean {
    const { triggers } = this.#parts
    return this.#triggersFor(table, operations).some(trigger => !triggers.isStored(trigger))
  }

  #cachedFor(table: Table): TableListeners {
    const found = this.#known.get(table)
    const generation = this.#parts.triggers.generation()
    if (found?.generation === generation) return found
    const made = { generation, byOperations: new Map() }
    this.#known.set(table, made)
    return made
  }

  #computeListeners(table: Table, operations: readonly RowOperation[]): WebhookListeners {
    const { triggers } = this.#parts
    const found = this.#triggersFor(table, operations)
    const names = (isStored: boolean) =>
      found.flatMap(trigger => (triggers.isStored(trigger) === isStored ? [trigger.name] : []))
    return { memory: names(false), outbox: names(true) }
  }

  #triggersFor(table: Table, operations: readonly RowOperation[]): readonly Trigger[] {
    const triggerOperations = operations.map(word => TRIGGER_OPERATION_OF[word])
    return this.#parts.triggers.on(table, triggerOperations)
  }
}
