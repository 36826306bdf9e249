/** The framework alone on this machine: no token, no database. */
import fastify from 'fastify'

const app = fastify()
app.get('/health', async () => ({ ok: true }))
app.get('/hello', async () => ({ hello: 'world' }))
// The same with the size of another response: a parameter gives the number of bytes in the body.
app.get('/hello/:bytes', async request => ({ hello: world(Number(request.params.bytes)) }))
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
process.once('SIGTERM', () => process.exit(0))

const worlds = new Map()

/** A text that makes the body exactly this long. */
function world(bytes) {
  const known = worlds.get(bytes) ?? 'o'.repeat(Math.max(0, bytes - '{"hello":""}'.length))
  worlds.set(bytes, known)
  return known
}
