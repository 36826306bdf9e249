/**
 * The script of `/`: shows whether the gateway is healthy, and what the caller's token permits. The token is
 * kept for this tab, where `/docs` and `/demo/orders` find it too, and is sent to this gateway only.
 */
const KEY = 'svc-token'
/** Limit on the names that are listed. */
const TABLES_SHOWN_MAX = 60
/** By then, the browser has begun to save a download. */
const REVOKE_MS = 60_000

/** The gateway's base URL, which can be a path behind a proxy. */
const base = new URL('.', window.location.href)
const element = id => document.getElementById(id)

const kept = () => window.sessionStorage.getItem(KEY) ?? ''

function keep(token) {
  if (token === '') window.sessionStorage.removeItem(KEY)
  else window.sessionStorage.setItem(KEY, token)
  return showTables()
}

function get(path, headers = {}) {
  return fetch(new URL(path, base), { headers })
}

async function showHealth() {
  const response = await get('health').catch(() => null)
  const { version = '' } = (await response?.json().catch(() => null)) ?? {}
  const isGood = response?.ok === true
  element('health').dataset.state = isGood ? 'good' : 'bad'
  element('health').textContent = isGood
    ? `Version ${version}, healthy`
    : response === null
      ? 'The gateway does not answer.'
      : 'The gateway has no connection to its database.'
}

/** Shows whether the token is valid, and lists the tables that it permits. */
async function showTables() {
  const token = kept()
  const { requiresToken } = await state
  element('forget').hidden = token === ''
  element('tables').hidden = true
  if (token === '' && requiresToken) {
    element('token-state').textContent = 'Requests need a token. It is kept for this tab only.'
    return
  }
  const response = await get('api/_schema', token === '' ? {} : { Authorization: `Bearer ${token}` })
  const answer = await response.json()
  // Another token may have been entered since.
  if (token !== kept()) return
  if (!response.ok) {
    element('token-state').textContent = answer.error.message
    return
  }
  element('token-state').textContent = token === '' ? 'Requests need no token here.' : 'This tab sends your token.'
  showNames(Object.keys(answer.tables))
}

function showNames(names) {
  const rest = names.length - TABLES_SHOWN_MAX
  element('tables').hidden = false
  element('tables-state').textContent =
    names.length === 0
      ? 'No table is visible: the database is empty, or its tables are not granted to the role of the gateway. ' +
        'svc check explains each case.'
      : `${names.length === 1 ? 'One table is' : `${names.length} tables are`} visible to you` +
        `${rest > 0 ? `; the first ${TABLES_SHOWN_MAX} are` : ':'}`
  element('tables')
    .querySelector('ul')
    .replaceChildren(
      ...names.slice(0, TABLES_SHOWN_MAX).map(name => {
        const item = document.createElement('li')
        item.textContent = name
        return item
      }),
    )
}

/** The link to the console if there is one, and in the demo a button for each sample caller. */
async function showCallers() {
  const { callers, hasConsole, notice = '' } = await state
  element('notice').hidden = notice === ''
  element('notice').textContent = notice
  element('console').hidden = !hasConsole
  const buttons = callers.map(({ title, token }) => {
    const button = document.createElement('button')
    button.textContent = `Enter as ${title}`
    button.addEventListener('click', () => run(keep(token)))
    return button
  })
  element('callers').hidden = buttons.length === 0
  element('board').hidden = buttons.length === 0
  element('callers')
    .querySelector('.choices')
    .replaceChildren(...buttons)
}

/** Downloads the document of the caller: a link cannot send the token. */
async function downloadOpenApi(name) {
  const token = kept()
  const response = await get('api/_openapi', token === '' ? {} : { Authorization: `Bearer ${token}` })
  if (!response.ok) {
    element('openapi-state').textContent = (await response.json()).error.message
    return
  }
  const link = document.createElement('a')
  link.href = URL.createObjectURL(await response.blob())
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_MS)
}

function run(task) {
  task.catch(() => {
    element('token-state').textContent = 'The gateway does not answer.'
  })
}

document.querySelector('form').addEventListener('submit', event => {
  event.preventDefault()
  const entered = element('token').value.trim()
  element('token').value = ''
  if (entered !== '') run(keep(entered))
})
element('openapi').addEventListener('click', event => {
  event.preventDefault()
  run(downloadOpenApi(event.currentTarget.download))
})
element('forget').addEventListener('click', () => run(keep('')))

/** `{ requiresToken, hasConsole, callers, notice? }` */
const state = get('front/state').then(response => response.json())
run(Promise.all([showHealth(), showCallers(), showTables()]))
