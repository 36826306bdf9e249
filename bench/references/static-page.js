/**
 * A page with the style sheet of the console and a script of the same compressed size, which writes one
 * sentence.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { brotliDecompressSync, gzipSync } from 'node:zlib'

const built = name => readFileSync(new URL(`../../dist/http/console/${name}`, import.meta.url))
const WRITE = "document.body.append(Object.assign(document.createElement('main'), { textContent: 'Ready.' }))\n"

/** Random characters in a comment, because others would be compressed. */
function scriptOf(length) {
  let characters = length
  for (let tries = 0; tries < 5; tries++) {
    const script = gzipSync(`${WRITE}//${randomBytes(characters).toString('base64').slice(0, characters)}`)
    if (Math.abs(script.length - length) < length / 1_000) return script
    characters = Math.round((characters * length) / script.length)
  }
  throw new Error(`no script of ${length} bytes`)
}

const FILES = {
  '/console': ['text/html', built('page.html.gz')],
  '/console/console.css': ['text/css', built('console.css.gz')],
  '/console/console.js': ['text/javascript', scriptOf(gzipSync(brotliDecompressSync(built('console.js.br'))).length)],
  '/health': ['application/json', gzipSync('{}')],
}

createServer(({ url }, response) => {
  const [type, body] = FILES[url] ?? []
  if (body === undefined) response.writeHead(404).end()
  else {
    const headers = { 'Content-Encoding': 'gzip', 'Content-Length': body.length }
    response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8`, ...headers }).end(body)
  }
}).listen(Number(process.env.PORT), '127.0.0.1')
process.once('SIGTERM', () => process.exit(0))
