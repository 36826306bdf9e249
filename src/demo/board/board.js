/**
 * The page `/demo/orders`: the open orders, kept up to date by `svc-gateway/client`. This file only displays
 * them. An application imports the client from the package.
 */
import { createClient } from './client.js'

const KEY = 'svc-token'
const COLUMNS = ['draft', 'pending', 'paid']
const state = document.getElementById('state')
const form = document.getElementById('caller')
const field = document.getElementById('token')

// ---- the token: kept for this tab only and removed from the address, where it would be copied and logged
// -----

const given = new URLSearchParams(window.location.hash.slice(1)).get('token')
if (given !== null) {
  window.sessionStorage.setItem(KEY, given)
  window.history.replaceState(null, '', window.location.pathname)
}

/** Functions to call when a token is entered. */
let waiting = []

async function token(why) {
  const kept = window.sessionStorage.getItem(KEY)
  if (why === null && kept !== null) return kept
  if (why !== 'expires')
    show('waiting', why === null ? 'Enter a token.' : 'The token is not good any more; enter another.')
  else show('live', 'The token expires in half a minute; enter another.')
  return new Promise(resolve => waiting.push(resolve))
}

form.addEventListener('submit', event => {
  event.preventDefault()
  const entered = field.value.trim()
  field.value = ''
  if (entered === '') return
  window.sessionStorage.setItem(KEY, entered)
  const those = waiting
  waiting = []
  if (those.length === 0) begin()
  else for (const resolve of those) resolve(entered)
})

function show(now, message) {
  document.body.dataset.state = now
  state.textContent = message === '' ? now : message
}

// ---- the orders
// ------------------------------------------------------------------------------------------

const money = (amount, currency) => new Intl.NumberFormat(undefined, { style: 'currency', currency }).format(amount)
const newestFirst = (a, b) => b.placed_at.localeCompare(a.placed_at) || b.id - a.id

/** By key. */
let cards = new Map()
let shown = new Map()
let changed = new Set()
let drawing = 0

function onChange(rows, key) {
  shown = rows
  if (key !== null) changed.add(key)
  // However many changes come: as often as the screen is drawn.
  if (drawing === 0) drawing = requestAnimationFrame(draw)
}

function draw() {
  drawing = 0
  const before = cards
  cards = new Map([...shown].map(([key, row]) => [key, before.get(key)?.row === row ? before.get(key) : cardOf(row)]))
  for (const status of COLUMNS) {
    const column = document.getElementById(status)
    const mine = [...cards.values()]
      .filter(({ row }) => row.status === status)
      .sort((a, b) => newestFirst(a.row, b.row))
    column.querySelector('output').textContent = mine.length
    column.querySelector('div').replaceChildren(...mine.map(({ element }) => element))
  }
  for (const key of changed) cards.get(key)?.element.animate([{ background: 'var(--changed)' }, {}], 2_000)
  changed = new Set()
}

function cardOf(row) {
  const element = document.createElement('article')
  element.dataset.id = row.id
  // As text: what customers and colleagues wrote is not HTML.
  const parts = { b: row.number, span: money(row.total, row.currency), time: new Date(row.placed_at).toLocaleString() }
  for (const [name, text] of Object.entries(parts)) element.appendChild(document.createElement(name)).textContent = text
  return { row, element }
}

let client = null
function begin() {
  client?.close()
  onChange(new Map(), null)
  client = createClient({
    url: new URL('..', window.location.href).href,
    token,
    onState: (now, why) => show(now, now === 'waiting' ? `The connection is lost; trying again. ${why}` : ''),
  })
  client
    .from('orders')
    .where({ status: { in: COLUMNS } })
    .select('id', 'number', 'status', 'total', 'currency', 'placed_at')
    .follow({ onChange })
}
begin()
