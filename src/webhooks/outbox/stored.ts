/**
 * Webhooks of tables whose triggers do not write them down: the statement that makes the change does it itself, in its own transaction. It costs less than a
 * trigger, and knows of no change but its own.
 */
import type { Table } from '../../catalog/model.ts'
import { NEW_ID, TOLD } from '../../install/outbox.ts'
import { quoteLiteral } from '../../language/quote.ts'
import { HAPPENED, type Happened, OPERATION_OF, type Trigger } from '../trigger.ts'

/** SQL of a statement that writes down the rows of `from`: `happened` (text), `after` and `before` (json). */
export interface Storing {
  readonly statement: (from: string) => string
}

/** `tenantColumn`: the one whose value says whose turn a delivery takes. */
export function storingFor(table: Table, triggers: readonly Trigger[], tenantColumn: string): Storing {
  const { schema, name, primaryKey, columnByName } = table
  const row = 'coalesce(after, before)'
  const tenant = columnByName.has(tenantColumn) ? `${row} ->> ${quoteLiteral(tenantColumn)}` : 'NULL'
  const key = `pg_catalog.jsonb_build_object(${primaryKey.flatMap(of => [quoteLiteral(of), `${row} -> ${quoteLiteral(of)}`]).join(', ')})::text`
  const of = (trigger: Trigger, from: string) => {
    const values = [
      NEW_ID,
      ...[quoteLiteral(trigger.name), quoteLiteral(schema), quoteLiteral(name)],
      ...['happened', 'after', 'before', 'pg_catalog.clock_timestamp()'],
      trigger.order === 'key' ? key : 'NULL',
      tenant,
    ]
    return `SELECT ${values.join(', ')} FROM ${from} WHERE happened IN (${happenedOf(trigger).map(quoteLiteral).join(', ')})`
  }
  return {
    statement: from =>
      `INSERT INTO svc.webhook (${TOLD}) ${triggers.map(trigger => of(trigger, from)).join(' UNION ALL ')}`,
  }
}

export function happenedOf({ operations }: Pick<Trigger, 'operations'>): readonly Happened[] {
  return HAPPENED.filter(happened => operations.includes(OPERATION_OF[happened]))
}
