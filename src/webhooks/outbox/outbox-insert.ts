/**
 * Stores webhooks of tables without capture triggers: the statement that makes the change inserts them
 * itself, in its own transaction. This costs less than a trigger, but covers only changes made through the
 * gateway.
 */
import type { Table } from '../../catalog/model.ts'
import { OUTBOX_COLUMNS, TICKET_COLUMN } from '../../install/outbox.ts'
import type { OutboxInsert, OutboxRows } from '../../language/sql/outbox-insert.ts'
import { quoteLiteral } from '../../language/sql/quote.ts'
import { ROW_OPERATIONS, type RowOperation, TRIGGER_OPERATION_OF, type Trigger } from '../trigger.ts'

/** The dependencies of an outbox insert. */
export interface OutboxInsertParts {
  /** The column with the tenant of a row; deliveries of different tenants take turns. */
  readonly tenantColumn: string
  /** The ticket of this gateway (register.ts). */
  readonly ticket: string
}

/** Builds the insert for all `triggers` of a table. */
export function outboxInsertFor(
  table: Table,
  triggers: readonly Trigger[],
  { tenantColumn, ticket }: OutboxInsertParts,
): OutboxInsert {
  const { schema, name, primaryKey, columnByName } = table
  const hasTenant = columnByName.has(tenantColumn)
  const isByKey = triggers.some(({ order }) => order === 'key')
  const selectFor = (
    trigger: Trigger,
    { from, operation, after, before, column, ticket: ticketParameter }: OutboxRows,
  ): readonly string[] => {
    const operations = rowOperationsOf(trigger)
    if ('always' in operation && !operations.some(word => word === operation.always)) return []
    const word = 'always' in operation ? quoteLiteral(operation.always) : operation.column
    const key = () => primaryKey.flatMap(part => [quoteLiteral(part), column(part)]).join(', ')
    const values = [
      ...[trigger.name, schema, name].map(quoteLiteral),
      ...[word, after, before, 'pg_catalog.clock_timestamp()'],
      trigger.order === 'key' ? `pg_catalog.jsonb_build_object(${key()})::text` : 'NULL',
      hasTenant ? `${column(tenantColumn)}::text` : 'NULL',
      `${ticketParameter()}::pg_catalog.text`,
    ]
    const where = 'always' in operation ? '' : ` WHERE ${word} IN (${operations.map(quoteLiteral).join(', ')})`
    return [`SELECT ${values.join(', ')} FROM ${from}${where}`]
  }
  return {
    ticket,
    columns: [...new Set([...(isByKey ? primaryKey : []), ...(hasTenant ? [tenantColumn] : [])])],
    statement: rows => {
      const selects = triggers.flatMap(trigger => selectFor(trigger, rows))
      return `INSERT INTO svc.gateway_webhook (${OUTBOX_COLUMNS}, ${TICKET_COLUMN}) ${selects.join(' UNION ALL ')}`
    },
  }
}

/** The row operations that a trigger listens to. */
export function rowOperationsOf({ operations }: Pick<Trigger, 'operations'>): readonly RowOperation[] {
  return ROW_OPERATIONS.filter(operation => operations.includes(TRIGGER_OPERATION_OF[operation]))
}
