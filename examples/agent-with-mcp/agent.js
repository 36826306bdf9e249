/**
 * An agent that answers a question about data: it reads the schema and a description of the language, writes
 * a query, has it checked until it is valid, and only then sends it to the gateway with the user's token.
 * `write` takes the place of a language model, with the input that a model would get.
 */
const GATEWAY = 'http://127.0.0.1:8080'
const TOOLS = 'http://127.0.0.1:8090/mcp'
const TOKEN = process.env.TOKEN
/** After this many attempts a model has not understood the problem. */
const DRAFTS_MAX = 4

const task = {
  question: 'Which three customers have paid the most?',
  construct: 'group by',
  parameters: { status: 'paid' },
}

/** A substitute for a model: it writes SQL, and follows the advice in an error. */
function write({ mistake }) {
  return (
    mistake?.example ??
    'select customer, sum(total) as paid from orders where status = :status group by customer ' +
      'order by paid desc limit 3'
  )
}

/** A tool of `svc mcp`: one POST, without a handshake or a client library. */
async function use(name, given) {
  const response = await fetch(TOOLS, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } }),
  })
  const { result, error } = await response.json()
  if (error !== undefined) throw new Error(`${name}: ${error.message}`)
  return result.structuredContent
}

async function ask(path, body) {
  const response = await fetch(GATEWAY + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return response.json()
}

console.log(`Question: ${task.question}`)
const { tables, error: refusal } = await ask('/api/_schema')
if (refusal !== undefined) throw new Error(refusal.message)
const columns = tables.orders.columns.map(({ name }) => name)
console.log(`The gateway has: orders (${columns.join(', ')})`)
const { card } = await use('svc_syntax', { construct: task.construct })
const example = card.examples[1].query.replace('\n', ' ')
console.log(`The card of ${task.construct} has ${card.examples.length} examples, such as: ${example}`)

let mistake = null
for (let draft = 1; draft <= DRAFTS_MAX; draft++) {
  const query = write({ task, tables, card, mistake })
  console.log(`\nDraft ${draft}: ${query}`)
  const checked = await use('svc_parse_query', { query })
  if (checked.ok) {
    console.log(`It is right, and means: ${checked.sql}`)
    // Values are sent separately, so they cannot be interpreted as part of the query.
    const { data, error } = await ask('/api/_query', { query, parameters: task.parameters })
    if (error === undefined) {
      for (const { customer, paid } of data) console.log(`  ${customer}: ${paid.toFixed(2)}`)
      process.exit(0)
    }
    // Errors that only the database can detect: a missing column, too many rows.
    mistake = error
  } else mistake = checked.error
  console.log(`Not yet: ${mistake.message}`)
  if (mistake.hint) console.log(`Hint: ${mistake.hint}`)
}
console.log(`No answer in ${DRAFTS_MAX} drafts.`)
process.exitCode = 1
