/**
 * Webhooks of tables whose triggers do not write them down: the statement that makes the change does it itself, in its own transaction. It costs less than a
 * trigger, and knows of no change but its own.
 */
import type { Table } from '../../catalog/model.ts'
import { TICKET, TOLD } from '../../install/outbox.ts'
import { quoteLiteral } from '../../language/sql/quote.ts'
import type { RowsWritten, Storing } from '../../language/sql/storing.ts'
import { HAPPENED, type Happened, OPERATION_OF, type Trigger } from '../trigger.ts'

export interface StoringParts {
  /** The column whose value says whose turn a delivery takes. */
  readonly tenantColumn: string
  /** Of this gateway (register.ts). */
  readonly ticket: string
}

export function storingFor(
  table: Table,
  triggers: readonly Trigger[],
  { tenantColumn, ticket }: StoringParts,
): Storing {
  const { schema, name, primaryKey, columnByName } = table
  const hasTenant = columnByName.has(tenantColumn)
  const isByKey = triggers.some(({ order }) => order === 'key')
  const of = (
    trigger: Trigger,
    { from, happened, after, before, column, ticket: shown }: RowsWritten,
  ): readonly string[] => {
    const wanted = happenedOf(trigger)
    if ('always' in happened && !wanted.some(word => word === happened.always)) return []
    const word = 'always' in happened ? quoteLiteral(happened.always) : happened.column
    const key = () => primaryKey.flatMap(part => [quoteLiteral(part), column(part)]).join(', ')
    const values = [
      ...[trigger.name, schema, name].map(quoteLiteral),
      ...[word, after, before, 'pg_catalog.clock_timestamp()'],
      trigger.order === 'key' ? `pg_catalog.jsonb_build_object(${key()})::text` : 'NULL',
      hasTenant ? `${column(tenantColumn)}::text` : 'NULL',
      `${shown()}::pg_catalog.text`,
    ]
    const where = 'always' in happened ? '' : ` WHERE ${word} IN (${wanted.map(quoteLiteral).join(', ')})`
    return [`SELECT ${values.join(', ')} FROM ${from}${where}`]
  }
  return {
    ticket,
    columns: [...new Set([...(isByKey ? primaryKey : []), ...(hasTenant ? [tenantColumn] : [])])],
    statement: rows => {
      const selects = triggers.flatMap(trigger => of(trigger, rows))
      return `INSERT INTO svc.told (${TOLD}, ${TICKET}) ${selects.join(' UNION ALL ')}`
    },
  }
}

export function happenedOf({ operations }: Pick<Trigger, 'operations'>): readonly Happened[] {
  return HAPPENED.filter(happened => operations.includes(OPERATION_OF[happened]))
}
