/** What the framework alone can do on this machine: no token, no database. */
import fastify from 'fastify'

const app = fastify()
app.get('/health', async () => ({ ok: true }))
app.get('/hello', async () => ({ hello: 'world' }))
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
process.once('SIGTERM', () => process.exit(0))
