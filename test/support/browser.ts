/**
 * A headless Chromium, controlled with the Chrome DevTools Protocol over two pipes: needs no port and no
 * package.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']
const BROWSER = NAMES.find(name => spawnSync(name, ['--version']).status === 0)

/** The reason why Chromium is not available; null if it is. */
export const BROWSER_MISSING: string | null = BROWSER === undefined ? `none of ${NAMES.join(', ')} is installed` : null

// biome-ignore lint/suspicious/noExplicitAny: the browser's messages are JSON of many shapes
type Json = any

/** A point of the window, in CSS pixels. */
interface Spot {
  readonly x: number
  readonly y: number
}

export interface Page {
  open(url: string): Promise<void>
  /** Runs the action, and resolves when the page to which it leads has loaded. */
  follow(action: () => Promise<unknown>): Promise<void>
  /** The value of an expression in the page. Promises are awaited. */
  evaluate(expression: string): Promise<Json>
  /** Resolves when the expression is true in the page. */
  until(expression: string): Promise<void>
  /** Sets the size of the window in CSS pixels, and the theme that the user prefers. */
  show(width: number, theme: 'light' | 'dark'): Promise<void>
  /** Presses a key: `Tab`, `Enter`, `Escape`, `F2`, an arrow, or a character; with Shift if `isShifted`. */
  press(key: string, isShifted?: boolean): Promise<void>
  /** Clicks with the mouse at the centre of the element that the expression describes, once or twice. */
  click(element: string, times?: 1 | 2): Promise<void>
  /** Moves the mouse from one point of the window to another with its button pressed. */
  drag(from: Spot, to: Spot): Promise<void>
  /** Types a text into the focused element. */
  type(text: string): Promise<void>
  /** Chooses files for the field that the selector finds. */
  choose(selector: string, paths: readonly string[]): Promise<void>
  /** Runs the action, and returns the file that it downloads: its suggested name, and its text. */
  download(action: () => Promise<unknown>): Promise<{ readonly name: string; readonly text: string }>
  /** Opens another tab in front of the page, which is then hidden; or closes it again. */
  cover(isCovered: boolean): Promise<void>
  /** Empties the browser's cache of files. */
  forget(): Promise<void>
  /** Disconnects the page from the network, or connects it again. */
  disconnect(isDisconnected: boolean): Promise<void>
  /** A screenshot as PNG. */
  screenshot(): Promise<Buffer>
  /** Every URL that the page requested. */
  readonly requested: readonly string[]
  /** The bodies of the responses that the document received, as far as the browser still has them. */
  bodies(): Promise<readonly string[]>
  /** Every message that the page received over a WebSocket. */
  readonly heard: readonly string[]
  /**
   * Messages from the page's console and from the browser: errors and violations of the content security
   * policy.
   */
  readonly complaints: string[]
  close(): Promise<void>
}

/** Virtual key codes, without which the browser ignores these keys. */
const KEY_CODES: Readonly<Record<string, number>> = {
  ...{ Tab: 9, Enter: 13, Escape: 27, End: 35, Home: 36, F2: 113 },
  ...{ ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 },
}

export async function openBrowser(): Promise<Page> {
  const profile = await mkdtemp(join(tmpdir(), 'svc-browser-'))
  const options = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--remote-debugging-pipe',
    `--user-data-dir=${profile}`,
  ]
  const quiet = ['--disable-background-networking', '--no-first-run', '--disable-extensions', '--window-size=1280,1600']
  const child = spawn(BROWSER ?? '', [...options, ...quiet, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  })
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const requested: string[] = []
  const heard: string[] = []
  const complaints: string[] = []
  const answered = new Set<string>()
  const waiting = new Map<number, { resolve(result: Json): void; reject(error: Error): void }>()
  const hearers = new Map<string, (params: Json) => void>()
  const [, , , input, output] = child.stdio as unknown as [null, null, null, Writable, Readable]
  void exited.then(() => {
    for (const { reject } of waiting.values()) reject(new Error('the browser process has exited'))
  })

  function hear({ id, method, params, result, error }: Json): void {
    if (id !== undefined) {
      const asked = waiting.get(id)
      waiting.delete(id)
      if (error === undefined) asked?.resolve(result)
      else asked?.reject(new Error(error.message))
      return
    }
    if (method === 'Network.requestWillBeSent') requested.push(params.request.url)
    if (method === 'Network.loadingFinished') answered.add(params.requestId)
    if (method === 'Network.webSocketCreated') requested.push(params.url)
    if (method === 'Network.webSocketFrameReceived') heard.push(params.response.payloadData)
    if (method === 'Log.entryAdded' && params.entry.level === 'error') complaints.push(params.entry.text)
    if (method === 'Runtime.exceptionThrown')
      complaints.push(params.exceptionDetails.exception?.description ?? 'exception')
    hearers.get(method)?.(params)
  }

  let rest = Buffer.alloc(0)
  output.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
      hear(JSON.parse(rest.subarray(0, end).toString()))
      rest = rest.subarray(end + 1)
    }
  })

  let count = 0
  function send(method: string, params: Json = {}, sessionId?: string): Promise<Json> {
    count += 1
    const id = count
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject })
      input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`)
    })
  }

  const { targetId } = await send('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
  await send('Browser.grantPermissions', { permissions: ['clipboardReadWrite', 'clipboardSanitizedWrite'] })
  for (const domain of ['Page', 'Network', 'Log', 'Runtime']) await send(`${domain}.enable`, {}, sessionId)

  /** The tab in front of the page; null for none. */
  let cover: string | null = null

  async function evaluate(expression: string): Promise<Json> {
    const options = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = await send('Runtime.evaluate', options, sessionId)
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? 'exception')
    return result.value
  }

  async function follow(action: () => Promise<unknown>): Promise<void> {
    const loaded = new Promise<void>(resolve => hearers.set('Page.loadEventFired', () => resolve()))
    await action()
    await loaded
  }

  return {
    requested,
    heard,
    complaints,
    open: url => follow(() => send('Page.navigate', { url }, sessionId)),
    follow,
    evaluate,
    async until(expression) {
      await evaluate(`new Promise(resolve => {
        const look = () => { if (${expression}) { watch.disconnect(); resolve() } }
        const watch = new MutationObserver(look)
        watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true })
        look()
      })`)
    },
    async show(width, theme) {
      const size = { width, height: 900, deviceScaleFactor: 1, mobile: false }
      await send('Emulation.setDeviceMetricsOverride', size, sessionId)
      const features = [{ name: 'prefers-color-scheme', value: theme }]
      await send('Emulation.setEmulatedMedia', { features }, sessionId)
    },
    async press(key, isShifted = false) {
      const code = KEY_CODES[key]
      const text = key === 'Enter' ? { text: '\r' } : key.length === 1 ? { text: key } : {}
      const modifiers = isShifted ? 8 : 0
      const event = {
        key,
        modifiers,
        ...text,
        ...(code === undefined ? {} : { code: key, windowsVirtualKeyCode: code }),
      }
      await send('Input.dispatchKeyEvent', { type: 'keyDown', ...event }, sessionId)
      await send('Input.dispatchKeyEvent', { type: 'keyUp', ...event, text: undefined }, sessionId)
    },
    async click(element, times = 1) {
      // A page that is being laid out would move the element away from the mouse.
      const at = await evaluate(`new Promise(resolve => {
        let before = ''
        const look = () => {
          const element = ${element}
          element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' })
          const { x, y, width, height } = element.getBoundingClientRect()
          if (before === x + ' ' + y) return resolve({ x: x + width / 2, y: y + height / 2 })
          before = x + ' ' + y
          requestAnimationFrame(() => requestAnimationFrame(look))
        }
        look()
      })`)
      for (let clickCount = 1; clickCount <= times; clickCount++) {
        for (const type of ['mousePressed', 'mouseReleased'])
          await send('Input.dispatchMouseEvent', { ...at, type, button: 'left', clickCount }, sessionId)
      }
    },
    async bodies() {
      const found: string[] = []
      for (const requestId of answered) {
        // The browser forgets the responses of documents that it has left.
        const { body = '' } = await send('Network.getResponseBody', { requestId }, sessionId).catch(() => ({}))
        found.push(body)
      }
      return found
    },
    async drag(from, to) {
      const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 }
      const common = { button: 'left', clickCount: 1 }
      await send('Input.dispatchMouseEvent', { ...common, type: 'mousePressed', ...from }, sessionId)
      for (const at of [middle, to])
        await send('Input.dispatchMouseEvent', { ...common, type: 'mouseMoved', buttons: 1, ...at }, sessionId)
      await send('Input.dispatchMouseEvent', { ...common, type: 'mouseReleased', ...to }, sessionId)
    },
    async type(text) {
      await send('Input.insertText', { text }, sessionId)
    },
    async choose(selector, files) {
      const expression = `document.querySelector(${JSON.stringify(selector)})`
      const { result } = await send('Runtime.evaluate', { expression }, sessionId)
      await send('DOM.setFileInputFiles', { files, objectId: result.objectId }, sessionId)
    },
    async download(action) {
      const folder = await mkdtemp(join(profile, 'download-'))
      const options = { behavior: 'allowAndName', downloadPath: folder, eventsEnabled: true }
      await send('Browser.setDownloadBehavior', options)
      const begun = new Promise<Json>(resolve => hearers.set('Browser.downloadWillBegin', resolve))
      const ended = new Promise<Json>(resolve =>
        hearers.set('Browser.downloadProgress', params => {
          if (params.state !== 'inProgress') resolve(params)
        }),
      )
      await action()
      const { suggestedFilename: name, guid } = await begun
      const { state } = await ended
      if (state !== 'completed') throw new Error(`the download of ${name} has ended as ${state}`)
      return { name, text: await readFile(join(folder, guid), 'utf8') }
    },
    async cover(isCovered) {
      if (cover !== null) await send('Target.closeTarget', { targetId: cover })
      cover = isCovered ? (await send('Target.createTarget', { url: 'about:blank' })).targetId : null
      await send('Target.activateTarget', { targetId: cover ?? targetId })
      const state = isCovered ? 'hidden' : 'visible'
      await evaluate(`new Promise(resolve => {
        const look = () => { if (document.visibilityState === '${state}') resolve() }
        document.addEventListener('visibilitychange', look)
        look()
      })`)
    },
    async forget() {
      await send('Network.clearBrowserCache', {}, sessionId)
    },
    async disconnect(offline) {
      const speed = { latency: 0, downloadThroughput: -1, uploadThroughput: -1 }
      await send('Network.emulateNetworkConditions', { offline, ...speed }, sessionId)
      await evaluate(`new Promise(resolve => {
        const look = () => { if (navigator.onLine === ${!offline}) resolve() }
        addEventListener('${offline ? 'offline' : 'online'}', look)
        look()
      })`)
    },
    async screenshot() {
      const { data } = await send('Page.captureScreenshot', {}, sessionId)
      return Buffer.from(data, 'base64')
    },
    async close() {
      child.kill('SIGKILL')
      await exited
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
