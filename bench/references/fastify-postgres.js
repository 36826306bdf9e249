/** The same as `fastify-pg.js` with postgres.js, which prepares statements automatically. */
import fastify from 'fastify'
import postgres from 'postgres'
import { identify } from './identify.js'

const sql = postgres(process.env.DATABASE_URL, { max: Number(process.env.CONNECTIONS_MAX) })

const app = fastify()
app.get('/health', async () => ({ ok: true }))
app.get('/api/orders/:id', async (request, reply) => {
  const claims = await identify(request.headers.authorization)
  const [row] = await sql.begin('read only', async sql => {
    await sql`select set_config('app.current_tenant_id', ${claims.tenant_id}, true),
      set_config('app.current_user_id', ${claims.user_id}, true),
      set_config('app.current_agent_id', ${claims.agent_id}, true), set_config('app.is_super_admin', 'false', true)`
    return sql`select * from orders where id = ${request.params.id}`
  })
  if (row === undefined) return reply.code(404).send({ error: 'not found' })
  return { data: row }
})
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
process.once('SIGTERM', () => process.exit(0))
