import { SAMPLES } from './samples.js'

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
const welcome = document.getElementById('welcome')
const callers = document.getElementById('callers')
const fold = document.getElementById('fold')
const folded = document.getElementById('folded')

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
  welcome.hidden = response.ok
  fold.hidden = !response.ok
  if (!response.ok) {
    reference.replaceChildren()
    message.textContent = response.status === 401 && !hasToken() ? ASK_FOR_TOKEN : answer.error.message
    await offerCallers()
    return
  }
  document.getElementById('title').textContent = answer.info.title
  document.title = answer.info.title
  shared = sharedParameters(answer)
  hideShared()
  window.SwaggerUIBundle({
    spec: { ...answer, servers: [{ url: base.pathname.replace(/(.)\/$/, '$1') }] },
    domNode: reference,
    docExpansion: 'none',
    defaultModelsExpandDepth: 0,
    deepLinking: true,
    filter: true,
    validatorUrl: null,
    requestInterceptor: withToken,
    requestSnippetsEnabled: true,
    requestSnippets: {
      generators: {
        curl: { title: 'curl', syntax: 'bash' },
        typescript: { title: 'TypeScript', syntax: 'javascript' },
        python: { title: 'Python', syntax: 'python' },
      },
      defaultExpanded: true,
      languages: ['curl', 'typescript', 'python'],
    },
    layout: 'ReferenceLayout',
    plugins: [accessible, oneTokenControl, samples, plainComments],
  })
}

/** The layout of Swagger UI without a second main element, a list of one server, and links in buttons. */
const accessible = ({ React: { createElement } }) => ({
  components: {
    DeepLink: ({ text }) => createElement('span', null, text),
    ReferenceLayout: ({ getComponent }) =>
      createElement(
        'div',
        { className: 'swagger-ui' },
        createElement(getComponent('SvgAssets')),
        createElement('div', { className: 'wrapper' }, createElement(getComponent('InfoContainer', true))),
        createElement(getComponent('FilterContainer', true)),
        ...['operations', 'Models'].map(name =>
          createElement('div', { className: 'wrapper', key: name }, createElement(getComponent(name, true))),
        ),
      ),
  },
})

/** Attributes for assistive technology that elements of Swagger UI lack, by their selectors. */
const CORRECTIONS = {
  '.opblock-tag, .models > h4': { 'aria-level': '2' },
  '.opblock h4': { 'aria-level': '3' },
  '.opblock h5': { 'aria-level': '4' },
  // Code that scrolls.
  pre: { tabindex: '0' },
}

function correct() {
  for (const [selector, attributes] of Object.entries(CORRECTIONS)) {
    for (const element of reference.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
    }
  }
}

new MutationObserver(correct).observe(reference, { childList: true, subtree: true })

/** The token is entered above; Swagger UI would ask for it again. */
const oneTokenControl = {
  wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null },
}

/** Comments of the database are Markdown without HTML: Swagger UI would parse it, and remove most of it. */
const plainComments = ({ React: { createElement } }) => ({
  wrapComponents: {
    Markdown: Original => props => createElement(Original, { ...props, source: withoutHtml(props.source) }),
  },
})

/** Markdown in which the tags are text. Code already is: it is not changed. */
function withoutHtml(markdown) {
  if (typeof markdown !== 'string') return markdown
  return markdown.replace(/(`+)[^`]+\1|<(?=[a-z/!?])/gi, found => (found === '<' ? '&lt;' : found))
}

const samples = {
  fn: Object.fromEntries(
    Object.entries(SAMPLES).map(([name, print]) => [`requestSnippetGenerator_${name}`, sent => print(requestOf(sent))]),
  ),
}

/** A request of Swagger UI. */
function requestOf(sent) {
  const body = sent.get('body')
  const written = typeof body === 'string' || body == null ? body : JSON.stringify(body)
  return {
    method: String(sent.get('method')).toUpperCase(),
    url: new URL(sent.get('url'), base).href,
    body: written == null || written === '' ? null : written,
  }
}

/** The sample callers of the demo; elsewhere the list is empty. */
async function offerCallers() {
  const state = await (await fetch(new URL('front/state', base))).json()
  callers.replaceChildren(
    ...state.callers.map(({ title, token }) => {
      const button = document.createElement('button')
      button.type = 'button'
      button.textContent = `Enter as ${title}`
      button.addEventListener('click', () => {
        window.sessionStorage.setItem(KEY, token)
        start()
      })
      return button
    }),
  )
}

/** A parameter that at least so many operations have is shared. */
const SHARED_BY = 5

let shared = []
const sheet = new CSSStyleSheet()
document.adoptedStyleSheets = [sheet]

/** The names of parameters that the components of the document define and that many operations use. */
function sharedParameters({ paths, components }) {
  const counts = new Map()
  for (const operations of Object.values(paths)) {
    for (const { parameters = [] } of Object.values(operations)) {
      for (const { $ref: reference } of parameters) {
        const found = components.parameters?.[reference?.split('/').at(-1)]
        if (found !== undefined) counts.set(found.name, (counts.get(found.name) ?? 0) + 1)
      }
    }
  }
  return [...counts].filter(([, count]) => count >= SHARED_BY).map(([name]) => name)
}

/** Swagger UI has a row for each parameter. */
function hideShared() {
  sheet.replaceSync('')
  if (!folded.checked) return
  for (const name of shared) sheet.insertRule(`tr[data-param-name="${CSS.escape(name)}"] { display: none }`)
}

folded.addEventListener('change', hideShared)

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
  document.getElementById('forget').hidden = !hasToken()
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
