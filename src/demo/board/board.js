/**
 * The page `/demo/orders`: the open orders of each caller, kept up to date by `svc-gateway/client`. The demo
 * names two callers, who are shown side by side; with a token in the address, or outside the demo, there is
 * one. An application imports the client from the package.
 */
import { createClient } from './client.js'

const KEY = 'svc-token'
const COLUMNS = ['draft', 'pending', 'paid']
const form = document.getElementById('caller')
const field = document.getElementById('token')
const main = document.querySelector('main')

// ---- the token of a single caller: kept for this tab, removed from the address, where it would be logged

const given = new URLSearchParams(window.location.hash.slice(1)).get('token')
if (given !== null) {
  window.sessionStorage.setItem(KEY, given)
  window.history.replaceState(null, '', window.location.pathname)
}

/** Functions to call when a token is entered. */
let waiting = []

function enteredToken(show) {
  return async why => {
    const kept = window.sessionStorage.getItem(KEY)
    if (why === null && kept !== null) return kept
    if (why === 'expires') show('live', 'The token expires in half a minute; enter another.')
    else show('waiting', why === null ? 'Enter a token.' : 'The token is not accepted any more; enter another.')
    return new Promise(resolve => waiting.push(resolve))
  }
}

// ---- one caller

const money = (amount, currency) => new Intl.NumberFormat(undefined, { style: 'currency', currency }).format(amount)
const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'short' })
const newestFirst = (a, b) => b.placed_at.localeCompare(a.placed_at) || b.id - a.id

/** Shows the orders of one caller. `token` returns the caller's token, as the client asks for it. */
function openShop({ name, token }) {
  const shop = document.getElementById('shop').content.cloneNode(true).querySelector('.shop')
  const find = selector => shop.querySelector(selector)
  find('h2').textContent = name
  shop.setAttribute('aria-label', name)
  // The columns scroll, so the keyboard must reach them.
  for (const column of shop.querySelectorAll('[data-status]')) {
    Object.assign(column.querySelector('div'), { tabIndex: 0, role: 'group', ariaLabel: column.dataset.status })
  }
  main.append(shop)

  let rows = new Map()
  let cards = new Map()
  let changed = new Set()
  let heard = 0
  let drawing = 0

  function show(state, message = '') {
    shop.dataset.state = state
    find('.state').textContent = message === '' ? state : message
  }

  function onChange(now, key) {
    rows = now
    if (key !== null) {
      changed.add(key)
      heard += 1
    }
    // However many changes arrive, the page is drawn once per frame.
    if (drawing === 0) drawing = requestAnimationFrame(draw)
  }

  function draw() {
    drawing = 0
    const before = cards
    cards = new Map([...rows].map(([key, row]) => [key, before.get(key)?.row === row ? before.get(key) : cardOf(row)]))
    for (const status of COLUMNS) {
      const column = find(`[data-status="${status}"]`)
      const mine = [...cards.values()]
        .filter(({ row }) => row.status === status)
        .sort((a, b) => newestFirst(a.row, b.row))
      column.querySelector('output').textContent = mine.length
      column.querySelector('div').replaceChildren(...mine.map(({ element }) => element))
    }
    find('.heard output').textContent = heard
    for (const key of changed) cards.get(key)?.element.animate([{ background: 'var(--changed)' }, {}], 2_000)
    changed = new Set()
  }

  onChange(rows, null)
  const client = createClient({
    url: new URL('..', window.location.href).href,
    token: token(show),
    onState: (now, why) => show(now, now === 'waiting' ? `The connection is lost; trying again. ${why}` : ''),
  })
  client
    .from('orders')
    .where({ status: { in: COLUMNS } })
    .select('id', 'number', 'status', 'total', 'currency', 'placed_at')
    .follow({ onChange })
  return {
    shop,
    close() {
      client.close()
      shop.remove()
    },
  }
}

function cardOf(row) {
  const element = document.createElement('article')
  element.dataset.id = row.id
  // As text: what customers and colleagues wrote is not HTML.
  const placed = TIME.format(new Date(row.placed_at))
  const parts = { b: row.number, span: money(row.total, row.currency), time: placed }
  for (const [name, text] of Object.entries(parts)) element.appendChild(document.createElement(name)).textContent = text
  return { row, element }
}

// ---- writes that bypass the gateway

/** Lets the demo change an order in PostgreSQL, and shows the statement. */
async function changeWithSql(shop, slug, change) {
  const path = `orders/sql?${new URLSearchParams({ shop: slug, change })}`
  const [text, code] = await fetch(path, { method: 'POST' }).then(
    async response => {
      const body = await response.json()
      return response.ok
        ? ['Executed by another program, directly in PostgreSQL:', body.statement]
        : [body.error.message, '']
    },
    () => ['The demo does not answer.', ''],
  )
  const statement = shop.querySelector('.statement')
  statement.querySelector('p').textContent = text
  statement.querySelector('pre').hidden = code === ''
  statement.querySelector('code').textContent = code
  statement.hidden = false
}

// ---- the callers

const readShops = async () => (await (await fetch('orders/shops')).json()).shops

/** The tokens of the demo's callers are short-lived; the client asks for another one before they expire. */
const shopToken = slug => () => async () => (await readShops()).find(shop => shop.slug === slug).token

let single = null

function openSingle() {
  single?.close()
  document.body.dataset.shops = 'one'
  form.hidden = false
  single = openShop({ name: 'Your orders', token: enteredToken })
}

form.addEventListener('submit', event => {
  event.preventDefault()
  const entered = field.value.trim()
  field.value = ''
  if (entered === '') return
  window.sessionStorage.setItem(KEY, entered)
  const those = waiting
  waiting = []
  if (those.length === 0) openSingle()
  else for (const resolve of those) resolve(entered)
})

const shops = given === null ? await readShops() : []
if (shops.length === 0) openSingle()
else {
  document.body.dataset.shops = 'several'
  document.getElementById('lead').hidden = false
}
for (const { name, slug } of shops) {
  const { shop } = openShop({ name, token: shopToken(slug) })
  shop.querySelector('.sql').hidden = false
  for (const button of shop.querySelectorAll('.sql button')) {
    button.setAttribute('aria-label', `${button.textContent}, ${name}`)
    button.addEventListener('click', () => changeWithSql(shop, slug, button.dataset.change))
  }
}
