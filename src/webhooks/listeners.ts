/**
 * The triggers that receive a write, by the way their deliveries are stored. Computed once for each table and
 * kind of write, and again after the triggers or the installation have changed.
 */
import type { Table } from '../catalog/model.ts'
import type { OutboxInsert } from '../language/sql/outbox-insert.ts'
import { type OutboxInsertParts, outboxInsertFor } from './outbox/outbox-insert.ts'
import { type RowOperation, TRIGGER_OPERATION_OF, TRIGGER_OPERATIONS } from './trigger.ts'
import type { DeliveryWriter, Triggers } from './triggers.ts'

/** Names of the triggers that receive a write. */
export interface WebhookListeners {
  /** Triggers whose deliveries are kept in memory. */
  readonly memory: readonly string[]
  /** Triggers whose deliveries are in the database when the write is committed. */
  readonly outbox: readonly string[]
  /**
   * How the statement stores deliveries itself where no database trigger does. The same object until triggers
   * or the installation change.
   */
  readonly outboxInsert: OutboxInsert | null
}

/** The inputs of the index of listeners. */
export interface ListenerIndexParts extends OutboxInsertParts {
  readonly triggers: Pick<Triggers, 'on' | 'writerOf' | 'generation'>
}

/** Cached results for one table. */
interface TableListeners {
  /** The generation of the triggers that this was computed for. */
  readonly generation: number
  /** Created when first needed. */
  outboxInsert: OutboxInsert | null
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
    const made = this.#computeListeners(table, operations, cached)
    cached.byOperations.set(key, made)
    return made
  }

  /** True if a trigger depends on the gateway to report the write. */
  needsGateway(table: Table, operations: readonly RowOperation[]): boolean {
    return this.#triggersFor(table, operations).some(([, writer]) => writer !== 'database')
  }

  #cachedFor(table: Table): TableListeners {
    const found = this.#known.get(table)
    const generation = this.#parts.triggers.generation()
    if (found?.generation === generation) return found
    const made = { generation, outboxInsert: null, byOperations: new Map() }
    this.#known.set(table, made)
    return made
  }

  #computeListeners(table: Table, operations: readonly RowOperation[], cached: TableListeners): WebhookListeners {
    const found = this.#triggersFor(table, operations)
    const names = (isBy: (writer: DeliveryWriter) => boolean) =>
      found.filter(([, writer]) => isBy(writer)).map(([name]) => name)
    const isStoring = found.some(([, writer]) => writer === 'statement')
    if (isStoring) cached.outboxInsert ??= this.#outboxInsert(table)
    return {
      memory: names(writer => writer === 'none'),
      outbox: names(writer => writer !== 'none'),
      outboxInsert: isStoring ? cached.outboxInsert : null,
    }
  }

  /** Names of triggers, and how their deliveries are stored. */
  #triggersFor(table: Table, operations: readonly RowOperation[]): readonly (readonly [string, DeliveryWriter])[] {
    const { triggers } = this.#parts
    const triggerOperations = operations.map(word => TRIGGER_OPERATION_OF[word])
    return triggers.on(table, triggerOperations).map(trigger => [trigger.name, triggers.writerOf(trigger)])
  }

  /** The statement for all triggers of the table, whatever the operation: it selects the triggers itself. */
  #outboxInsert(table: Table): OutboxInsert {
    const { triggers } = this.#parts
    const wanting = triggers.on(table, TRIGGER_OPERATIONS).filter(trigger => triggers.writerOf(trigger) === 'statement')
    return outboxInsertFor(table, wanting, this.#parts)
  }
}
