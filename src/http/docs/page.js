/**
 * The script of `/docs`: fetches the document with the caller's token and passes it to Swagger UI. The token
 * is kept for this tab and session, and is sent to this gateway only.
 */
const KEY = 'svc-token'
const field = document.getElementById('token')
const message = document.getElementById('message')
const reference = document.getElementById('reference')
const explanation = document.getElementById('explanation')
const checks = document.getElementById('checks')

/** The gateway's base URL, which can be a path behind a proxy. */
const base = new URL('.', window.location.href)

const ASK_FOR_TOKEN = 'Paste a token to show the operations that it permits.'

/** Swagger UI takes its dark colors from a class. */
const dark = window.matchMedia('(prefers-color-scheme: dark)')
const showColors = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', showColors)
showColors()

function authorization() {
  return hasToken() ? { Authorization: `Bearer ${window.sessionStorage.getItem(KEY)}` } : {}
}

function hasToken() {
  return (window.sessionStorage.getItem(KEY) ?? '') !== ''
}

/** Adds the token to requests. Headers entered in Swagger UI take precedence. */
function withToken(request) {
  const isOurs = new URL(request.url, base).origin === base.origin
  if (isOurs) request.headers = { ...authorization(), ...request.headers }
  return request
}

async function show() {
  message.textContent = ''
  const response = await fetch(new URL('api/_openapi', base), { headers: authorization() })
  const answer = await response.json()
  if (!response.ok) {
    reference.replaceChildren()
    message.textContent = response.status === 401 && !hasToken() ? ASK_FOR_TOKEN : answer.error.message
    return
  }
  window.SwaggerUIBundle({
    spec: { ...answer, servers: [{ url: base.pathname.replace(/(.)\/$/, '$1') }] },
    domNode: reference,
    docExpansion: 'none',
    defaultModelsExpandDepth: 0,
    deepLinking: true,
    filter: true,
    validatorUrl: null,
    requestInterceptor: withToken,
  })
}

/** Shows how the gateway reads the token. It answers that in development mode only. */
async function explain() {
  explanation.hidden = true
  if (!hasToken()) return
  const asked = authorization()
  const response = await fetch(new URL('docs/token', base), { headers: asked })
  const text = response.status === 200 ? await response.text() : ''
  // Another token may have been entered since.
  if (text === '' || asked.Authorization !== authorization().Authorization) return
  checks.textContent = text
  explanation.hidden = false
}

function start() {
  Promise.all([show(), explain()]).catch(() => {
    message.textContent = 'The gateway does not answer.'
  })
}

document.getElementById('caller').addEventListener('submit', event => {
  event.preventDefault()
  window.sessionStorage.setItem(KEY, field.value.trim())
  field.value = ''
  start()
})
document.getElementById('forget').addEventListener('click', () => {
  window.sessionStorage.removeItem(KEY)
  start()
})
start()
