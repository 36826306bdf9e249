/** The tasks as a collection of TanStack DB: received through a shape, and written through the REST API. */
import { electricCollectionOptions } from '@tanstack/electric-db-collection'
import { type Collection, createCollection } from '@tanstack/react-db'
import type { Batch, Client } from 'svc-gateway/client'
import type { Schema } from './schema.ts'

export type Task = Pick<Schema['Tables']['tasks']['Row'], 'id' | 'project_id' | 'title' | 'done' | 'created_at'>

export type Tasks = Collection<Task, string>

const COLUMNS = ['id', 'project_id', 'title', 'done', 'created_at']

export function createTasks(client: Client<Schema>, token: string): Tasks {
  /** Writes in one transaction. The collection shows the write until it has received this transaction. */
  async function write(make: (batch: Batch<Schema>) => readonly Promise<unknown>[]): Promise<{ txid: number }> {
    const [txid] = await client.batch(batch => [batch.rpc('transaction_id'), ...make(batch)])
    return { txid: Number(txid) }
  }
  return createCollection(
    electricCollectionOptions<Task>({
      id: 'tasks',
      getKey: task => task.id,
      shapeOptions: {
        url: `${window.location.origin}/v1/shape`,
        params: { table: 'tasks', columns: COLUMNS },
        headers: { Authorization: `Bearer ${token}` },
      },
      onInsert: ({ transaction }) =>
        write(batch => transaction.mutations.map(({ modified }) => batch.from('tasks').insert(modified))),
      onUpdate: ({ transaction }) =>
        write(batch =>
          transaction.mutations.map(({ original, changes }) => batch.from('tasks').update(original.id, changes)),
        ),
      onDelete: ({ transaction }) =>
        write(batch => transaction.mutations.map(({ original }) => batch.from('tasks').delete(original.id))),
    }),
  ) as unknown as Tasks
}
