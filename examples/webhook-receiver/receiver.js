/**
 * Receives webhooks: verifies the signature, stores the event, acknowledges it, and only then processes it.
 * In this order, no event is lost and none is processed twice: an event that could not be stored is not
 * acknowledged and is sent again; a repeated event is acknowledged and ignored.
 */
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { openInbox } from './inbox.js'

const PORT = 9000
/** The gateway sends no larger bodies. */
const BODY_BYTES_MAX = 1024 * 1024

/** The purpose of the program. It can be slow and it can fail, because the gateway does not wait for it. */
async function work({ operation, data }) {
  const { id, customer, total, status } = data.new ?? data.old
  console.log(`${operation} order ${id}: ${customer}, ${total.toFixed(2)}, ${status}`)
}

const signatures = new Webhook(process.env.HOOK_SECRET)
const inbox = await openInbox('inbox.ndjson', work)

createServer(async (request, response) => {
  const answer = status => response.writeHead(status).end()
  try {
    if (request.method !== 'POST') return answer(405)
    const body = await bodyOf(request)
    if (body === null) return answer(413)
    const event = verified(body, request.headers)
    if (event === null) return answer(401)
    answer((await inbox.keep(request.headers['webhook-id'], event)) ? 204 : 503)
  } catch (error) {
    console.error(error)
    answer(500)
  }
}).listen(PORT, '127.0.0.1', () => console.log(`The receiver listens on http://127.0.0.1:${PORT}/`))

/** The unmodified bytes, which the signature covers. Null if there are too many. */
async function bodyOf(request) {
  const chunks = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length > BODY_BYTES_MAX) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The event; null if it was not signed with this secret, or is older than five minutes. */
function verified(body, headers) {
  try {
    return signatures.verify(body, headers)
  } catch {
    return null
  }
}
