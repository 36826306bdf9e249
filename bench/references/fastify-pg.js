/**
 * A hand-written server: Fastify, `pg`, and the caller's session settings in a transaction of four
 * statements.
 */
import fastify from 'fastify'
import pg from 'pg'
import { identify } from './identify.js'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: Number(process.env.CONNECTIONS_MAX) })

const SETTINGS = {
  name: 'settings',
  text: `select set_config('app.current_tenant_id', $1, true), set_config('app.current_user_id', $2, true),
    set_config('app.current_agent_id', $3, true), set_config('app.is_super_admin', $4, true)`,
}
const ORDERS = {
  name: 'orders',
  text: 'select * from orders where status = $1 order by placed_at desc, id desc limit 25',
}
const ORDER = { name: 'order', text: 'select * from orders where id = $1' }

const READING = {
  name: 'reading',
  text: 'insert into bench_readings (sensor, value, taken_at, unit, note) values ($1, $2, $3, $4, $5) returning *',
}

const app = fastify()
app.get('/health', async () => ({ ok: true }))
app.get('/api/orders/:id', async (request, reply) => {
  const row = await answer(request, 'BEGIN READ ONLY', { ...ORDER, values: [request.params.id] })
  if (row === undefined) return reply.code(404).send({ error: 'not found' })
  return { data: row }
})
app.get('/api/orders', async request => {
  const rows = await rowsOf(request, 'BEGIN READ ONLY', { ...ORDERS, values: [request.query.status] })
  return { data: rows, count: rows.length }
})
app.post('/api/bench_readings', async (request, reply) => {
  const { sensor, value, taken_at, unit, note } = request.body
  const row = await answer(request, 'BEGIN', { ...READING, values: [sensor, value, taken_at, unit, note] })
  return reply.code(201).send({ data: row })
})

async function answer(request, begin, query) {
  const [row] = await rowsOf(request, begin, query)
  return row
}

async function rowsOf(request, begin, query) {
  const claims = await identify(request.headers.authorization)
  const client = await pool.connect()
  try {
    await client.query(begin)
    await client.query({ ...SETTINGS, values: [claims.tenant_id, claims.user_id, claims.agent_id, 'false'] })
    const { rows } = await client.query(query)
    await client.query('COMMIT')
    return rows
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
process.once('SIGTERM', () => process.exit(0))
