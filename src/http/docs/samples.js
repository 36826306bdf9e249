/** Code samples of a request for the API reference: curl, TypeScript with our client, and Python. */

/**
 * @typedef {{ method: string, url: string, body: string | null }} SampleRequest `body`: mostly JSON.
 */

/** The token is a variable in all samples, so that a copied one contains no secret. */
export const SAMPLES = { curl, typescript, python }

/** @param {SampleRequest} request */
function curl({ method, url, body }) {
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}${shellQuoted(url)}`]
  lines.push('  -H "Authorization: Bearer $TOKEN"')
  if (body !== null) lines.push("  -H 'Content-Type: application/json'", `  -d ${shellQuoted(body)}`)
  return lines.join(' \\\n')
}

function shellQuoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** @param {SampleRequest} request */
function typescript(request) {
  const { pathname, origin } = new URL(request.url)
  const at = pathname.indexOf('/api/')
  const base = origin + pathname.slice(0, Math.max(at, 0))
  return [
    "import { createClient } from 'svc-gateway/client'",
    '',
    `const client = createClient({ url: ${JSON.stringify(base)}, token: process.env.TOKEN })`,
    callOf(
      request,
      pathname
        .slice(at + 5)
        .split('/')
        .map(decodeURIComponent),
    ),
  ].join('\n')
}

function callOf({ method, url, body }, [first = '', id, child]) {
  const { searchParams } = new URL(url)
  const json = body ?? '{}'
  if (first === '_query') return queryCall(json)
  if (first === 'rpc') return `const result = await client.rpc(${text(id ?? '')}, ${body ?? argumentsOf(searchParams)})`
  const table = `client.from(${text(first)})`
  if (first.startsWith('_') || child !== undefined || id?.includes('aggregate') || id?.startsWith('_')) {
    return fetchCall({ method, url, body })
  }
  if (method === 'GET' && id === undefined) return `const rows = await ${table}${readsOf(searchParams)}.rows()`
  if (method === 'GET') return `const row = await ${table}.get(${text(id)})`
  if (method === 'POST') return `const row = await ${table}.insert(${json})`
  if (id === undefined) return fetchCall({ method, url, body })
  if (method === 'PATCH') return `const row = await ${table}.update(${text(id)}, ${json})`
  return `await ${table}.delete(${text(id)})`
}

/** The client has no method for these requests. */
function fetchCall({ method, url, body }) {
  const options = [
    `method: ${text(method)}`,
    "headers: { Authorization: 'Bearer ' + process.env.TOKEN }",
    ...(body === null ? [] : [`body: ${text(body)}`]),
  ]
  return `const response = await fetch(${text(url)}, { ${options.join(', ')} })`
}

function queryCall(json) {
  try {
    const { query, parameters } = JSON.parse(json)
    return `const rows = await client.query(${[query, parameters]
      .filter(part => part !== undefined)
      .map(text)
      .join(', ')})`
  } catch {
    return `const rows = await client.query(${text(json)})`
  }
}

function argumentsOf(parameters) {
  return text(Object.fromEntries(parameters))
}

/** `.where(…).order(…)` of a query string. */
function readsOf(parameters) {
  const where = {}
  let calls = ''
  for (const [name, value] of parameters) {
    const [, column, operator = 'eq'] = /^(.*?)(?:\.(eq|ne|gt|gte|lt|lte|like|ilike|in))?$/.exec(name) ?? []
    if (name === 'limit' || name === 'offset') calls += `.${name}(${Number(value)})`
    else if (name === 'select') calls += `.select(${value.split(',').map(text).join(', ')})`
    else if (name === 'sort') calls += `.orderBy(${value.split(',').map(text).join(', ')})`
    else if (name === 'expand')
      calls += value
        .split(',')
        .map(relation => `.expand(${text(relation.replace('nested:', ''))})`)
        .join('')
    else if (name === 'search') calls += `.search(${text(value)})`
    else
      where[column] =
        operator === 'eq' ? value : { ...where[column], [operator]: operator === 'in' ? value.split(',') : value }
  }
  return (Object.keys(where).length === 0 ? '' : `.where(${text(where)})`) + calls
}

/** @param {SampleRequest} request */
function python({ method, url, body }) {
  const lines = [
    'import os',
    'import requests',
    '',
    'response = requests.request(',
    `    ${text(method)},`,
    `    ${text(url)},`,
    '    headers={"Authorization": f"Bearer {os.environ[\'TOKEN\']}"' +
      (body === null ? '},' : ', "Content-Type": "application/json"},'),
  ]
  if (body !== null) lines.push(`    data=${text(body)}.encode(),`)
  return [...lines, ')', 'response.raise_for_status()', 'print(response.json())'].join('\n')
}

/** A string of JavaScript and of Python. */
function text(value) {
  return JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
}
