/** The columns, keys and relations of a table. */
import { DataTable } from '../data-table.tsx'
import { printRoute } from '../route.ts'
import type { Column, Table } from '../schema.ts'
import { TEXTS } from '../texts.ts'

export function Structure({ name, table }: { readonly name: string; readonly table: Table }) {
  return (
    <details>
      <summary>{TEXTS.structure.title}</summary>
      <DataTable
        label={TEXTS.structure.columns}
        columns={[TEXTS.structure.name, TEXTS.structure.type, TEXTS.structure.details]}
      >
        {table.columns.map(column => (
          <tr key={column.name}>
            <th scope="row">{column.name}</th>
            <td>{column.type}</td>
            <td>{detailsOf(column, table).join(', ')}</td>
          </tr>
        ))}
      </DataTable>
      <h3>{TEXTS.structure.relations}</h3>
      <p>
        <a href={printRoute('graph', name)}>{TEXTS.graph.show}</a>
      </p>
      {table.relations.length === 0 ? (
        <p class="muted">{TEXTS.structure.noRelations}</p>
      ) : (
        <ul class="relations">
          {table.relations.map(relation => (
            <li key={`${relation.name} ${relation.via}`}>
              <code>{relation.columns.join(', ')}</code> {TEXTS.structure.leadsTo}{' '}
              {TEXTS.structure[relation.cardinality]}{' '}
              <a href={printRoute('explore', relation.table)}>{relation.table}</a>{' '}
              <span class="muted">({relation.via})</span>
            </li>
          ))}
        </ul>
      )}
    </details>
  )
}

function detailsOf(column: Column, table: Table): readonly string[] {
  const unique = table.unique.filter(key => key.length === 1 && key[0] === column.name)
  return [
    ...(table.primary_key.includes(column.name) ? [TEXTS.structure.key] : []),
    ...(column.nullable ? [] : [TEXTS.structure.notNull]),
    ...(column.identity === null ? [] : [TEXTS.structure.identity]),
    ...(column.generated === null ? [] : [TEXTS.structure.generated]),
    ...(column.default === null ? [] : [TEXTS.structure.default(column.default)]),
    ...unique.map(key => TEXTS.structure.unique(key.join(', '))),
    ...(column.enum === undefined ? [] : [column.enum.join(' | ')]),
    ...(column.comment === null ? [] : [column.comment]),
  ]
}
