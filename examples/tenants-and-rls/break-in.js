/**
 * Company blue tries to read and change the data of company red in every way that the API offers, and with
 * invalid tokens. Each output line is an attempt and its result. The exit code is 1 if any attempt succeeded.
 * Needs RED, BLUE and NOBODY: tokens of the two companies, and of a user without a company.
 */
import { createHmac } from 'node:crypto'

const GATEWAY = 'http://127.0.0.1:8080'
const { RED, BLUE, NOBODY } = process.env

async function ask(method, path, { token = BLUE, headers = {}, body } = {}) {
  const response = await fetch(GATEWAY + path, {
    method,
    headers: { ...(token && { Authorization: `Bearer ${token}` }), 'Content-Type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, data: text === '' ? null : JSON.parse(text).data }
}

/** Signed with the attacker's own secret, or with `none` not at all (RFC 7519, 6). */
function forge(algorithm) {
  const part = value => Buffer.from(JSON.stringify(value)).toString('base64url')
  const said = `${part({ alg: algorithm, typ: 'JWT' })}.${part({ tenant_id: 'red', role: 'admin' })}`
  const signature = createHmac('sha256', 'a secret of my own, and a long one').update(said).digest('base64url')
  return `${said}.${algorithm === 'none' ? '' : signature}`
}

const everything = async () =>
  JSON.stringify([await ask('GET', '/api/projects', { token: RED }), await ask('GET', '/api/tasks', { token: RED })])
const before = await everything()
const project = (await ask('GET', '/api/projects?limit=1', { token: RED })).data[0].id
const task = (await ask('GET', '/api/tasks?limit=1', { token: RED })).data[0].id
const mine = (await ask('GET', '/api/tasks?limit=1')).data[0]

const is = status => answer => answer.status === status
/** Every returned row belongs to blue. */
const onlyOwn = ({ data }) => Array.isArray(data) && data.every(row => row.tenant_id === 'blue')
const nothing = ({ status, data }) => status === 200 && data.length === 0
const count =
  value =>
  ({ data }) =>
    data.count === value

const attempts = [
  ['read its task by number', ['GET', `/api/tasks/${task}`], is(404)],
  ['ask for its rows by name', ['GET', '/api/tasks?tenant_id=red'], nothing],
  ['ask for its rows or mine', ['GET', '/api/tasks?or=(tenant_id.eq.red,tenant_id.eq.blue)'], onlyOwn],
  ['put SQL into a value', ['GET', `/api/tasks?title=${encodeURIComponent("x' or tenant_id = 'red' --")}`], nothing],
  ['go through its project', ['GET', `/api/projects/${project}/tasks`], is(404)],
  ['count all rows', ['GET', '/api/tasks/aggregate?fn=count'], count(1)],
  [
    'ask in the query language',
    ['POST', '/api/_query', { body: { query: "get tasks where tenant_id = 'red'" } }],
    nothing,
  ],
  ['change its task', ['PATCH', `/api/tasks/${task}`, { body: { done: true } }], is(404)],
  ['change all tasks', ['PATCH', '/api/tasks?done=false', { body: { title: 'mine' } }], onlyOwn],
  ['delete its task', ['DELETE', `/api/tasks/${task}`], is(404)],
  [
    'create in its name',
    ['POST', '/api/tasks', { body: { tenant_id: 'red', project_id: project, title: 'x' } }],
    is(403),
  ],
  ['hang a task under its project', ['POST', '/api/tasks', { body: { project_id: project, title: 'x' } }], is(400)],
  ['give a task of mine to it', ['PATCH', `/api/tasks/${mine.id}`, { body: { tenant_id: 'red' } }], is(403)],
  [
    'write over its task',
    ['POST', '/api/tasks', { headers: { 'X-Upsert': 'true' }, body: { ...mine, id: task } }],
    is(403),
  ],
  ['say in a header who I am', ['GET', '/api/tasks', { headers: { 'x-tenant-id': 'red' } }], onlyOwn],
  ['sign a token myself', ['GET', '/api/tasks', { token: forge('HS256') }], is(401)],
  ['not sign a token', ['GET', '/api/tasks', { token: forge('none') }], is(401)],
  ['come without a token', ['GET', '/api/tasks', { token: null }], is(401)],
  ['come without a company', ['GET', '/api/tasks', { token: NOBODY }], nothing],
]

for (const [what, request, held] of attempts) {
  const answer = await ask(...request)
  const found = Array.isArray(answer.data) ? `, ${answer.data.length} rows` : ''
  const holds = held(answer)
  if (!holds) process.exitCode = 1
  console.log(`${holds ? 'held' : 'BROKEN'}  ${what}: ${answer.status}${found}`)
}
const same = before === (await everything())
if (!same) process.exitCode = 1
console.log(same ? `${attempts.length} attempts; red has what it had` : 'BROKEN  red has not what it had')
