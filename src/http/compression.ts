/**
 * Content codings of answers (RFC 9110, 8.4 and 12.5.3): which of them a client takes, and the bodies in them. Answers below `compress_min_bytes` are sent as
 * they are: they fill a packet or two either way, and compressing them takes longer than sending the rest.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import {
  type BrotliOptions,
  brotliCompress,
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createGzip,
  gzip,
  gzipSync,
  type ZlibOptions,
} from 'node:zlib'
import type { Answer } from '../exchange.ts'

export type Coding = 'br' | 'gzip'

/**
 * What to do with an answer. `none`: it is not subject to compression. `identity`: it would be, for another client, which `Vary` has to say.
 */
export type Choice = Coding | 'identity' | 'none'

export interface Compression {
  /** `bytes` of the body; null for a stream. */
  choose(headers: IncomingHttpHeaders, answer: Answer, bytes: number | null): Choice
}

/** `minBytes` 0: nothing is compressed. */
export function createCompression(minBytes: number): Compression {
  const choices = new Map<string, Coding | 'identity'>()

  /** Clients of one kind send one text, and there are few kinds. */
  function codingFor(accepted: string): Coding | 'identity' {
    const known = choices.get(accepted)
    if (known !== undefined) return known
    if (choices.size >= CHOICES_MAX) choices.clear()
    const coding = negotiate(accepted)
    choices.set(accepted, coding)
    return coding
  }

  return {
    choose(headers, answer, bytes) {
      if (minBytes === 0 || (bytes !== null && bytes < minBytes) || !isCompressible(answer)) return 'none'
      const accepted = headers['accept-encoding']
      if (accepted === undefined) return 'identity'
      if (mayNotTransform(headers['cache-control']) || mayNotTransform(answer.headers['Cache-Control']))
        return 'identity'
      return codingFor(String(accepted))
    },
  }
}

/** Texts of `Accept-Encoding` whose meaning is kept. */
const CHOICES_MAX = 100

/** What says itself how it varies, such as a page that lies compressed on the disk, is left alone. */
function isCompressible({ headers }: Answer): boolean {
  if ('Vary' in headers || 'Content-Encoding' in headers) return false
  const type = headers['Content-Type'] ?? ''
  return type.startsWith('application/json') || type.startsWith('application/x-ndjson') || type.startsWith('text/')
}

/** RFC 9111, 5.2.1.6 and 5.2.2.6. */
export function mayNotTransform(cacheControl: string | undefined): boolean {
  return cacheControl !== undefined && /(^|[\s,])no-transform\s*(,|$)/i.test(cacheControl)
}

/** RFC 9110, 12.5.3. Of codings that are equally welcome the one that takes less time. */
export function negotiate(accepted: string): Coding | 'identity' {
  const weights = new Map(accepted.split(',').map(weightOf))
  const weight = (coding: string) => weights.get(coding) ?? weights.get('*') ?? 0
  const br = weight('br')
  const gzipped = Math.max(weight('gzip'), weights.get('x-gzip') ?? 0)
  const best = Math.max(br, gzipped)
  // Without a weight of its own `identity` is the last resort.
  if (best === 0 || best < (weights.get('identity') ?? 0)) return 'identity'
  return br >= gzipped ? 'br' : 'gzip'
}

/** A weight that cannot be read is as good as 0: whoever sends it gets the plain bytes. */
function weightOf(element: string): readonly [string, number] {
  const [name = '', ...parameters] = element.split(';')
  const quality = parameters.map(parameter => parameter.trim().toLowerCase()).find(text => text.startsWith('q='))
  const weight = quality === undefined ? 1 : Number(quality.slice('q='.length))
  return [name.trim().toLowerCase(), weight >= 0 && weight <= 1 ? weight : 0]
}

// Measured with rows as JSON (bench/compression.ts). Brotli at 1 leaves as much as gzip at 2, in half its time; at 4 it leaves an eighth less, in three times the time.
const BROTLI_QUALITY = 1
const GZIP_LEVEL = 2

/** An encoder's window, 256 KiB: a larger one costs memory and leaves hardly less. */
const BROTLI_WINDOW_BITS = 18

/** Larger bodies are compressed by another thread; for smaller ones handing them over takes longer than the work. */
const AT_ONCE_BYTES_MAX = 16 * 1024

/** Bytes of output that a thread hands back at a time. */
const OUTPUT_BYTES = 64 * 1024

const GZIP: ZlibOptions = { level: GZIP_LEVEL }
const BROTLI: BrotliOptions = {
  params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW_BITS },
}

const gzipAside = promisify<Buffer, ZlibOptions, Buffer>(gzip)
const brotliAside = promisify<Buffer, BrotliOptions, Buffer>(brotliCompress)

/** At once where the body is small. */
export function compress(body: Buffer, coding: Coding): Buffer | Promise<Buffer> {
  if (body.length <= AT_ONCE_BYTES_MAX) return coding === 'br' ? brotliCompressSync(body, BROTLI) : gzipSync(body, GZIP)
  return coding === 'br'
    ? brotliAside(body, { ...BROTLI, chunkSize: OUTPUT_BYTES })
    : gzipAside(body, { ...GZIP, chunkSize: OUTPUT_BYTES })
}

/** Each chunk in the coding, complete as far as it goes, so that its rows can be read when it comes. */
export async function* compressStream(body: AsyncGenerator<Buffer>, coding: Coding): AsyncGenerator<Buffer> {
  const encoder = createEncoder(coding)
  try {
    for (let next = await body.next(); next.done !== true; next = await body.next()) {
      const chunk = await encoder.encode(next.value)
      let thrown: { readonly error: unknown } | null = null
      try {
        yield chunk
      } catch (error) {
        thrown = { error }
      }
      if (thrown === null) continue
      // The body turns an error into its last line.
      const line = await body.throw(thrown.error)
      if (line.done !== true) yield await encoder.encode(line.value)
      throw thrown.error
    }
    yield await encoder.end()
  } finally {
    encoder.close()
    await body.return(undefined)
  }
}

interface Encoder {
  /** What can be decoded to all that was encoded so far. */
  encode(chunk: Buffer): Promise<Buffer>
  /** What is left. */
  end(): Promise<Buffer>
  close(): void
}

function createEncoder(coding: Coding): Encoder {
  const stream =
    coding === 'br'
      ? createBrotliCompress({ ...BROTLI, chunkSize: OUTPUT_BYTES })
      : createGzip({ ...GZIP, chunkSize: OUTPUT_BYTES })
  const flush = coding === 'br' ? constants.BROTLI_OPERATION_FLUSH : constants.Z_SYNC_FLUSH
  let output: Buffer[] = []
  stream.on('data', (chunk: Buffer) => output.push(chunk))

  function taken(): Buffer {
    // What was not handed over yet comes to the listener as well.
    while (stream.read() !== null);
    const bytes = Buffer.concat(output)
    output = []
    return bytes
  }

  return {
    encode: chunk =>
      new Promise((resolve, reject) => {
        stream.once('error', reject)
        stream.write(chunk)
        stream.flush(flush, () => {
          stream.off('error', reject)
          resolve(taken())
        })
      }),
    end: () =>
      new Promise((resolve, reject) => {
        stream.once('error', reject)
        stream.once('end', () => resolve(taken()))
        stream.end()
      }),
    close: () => stream.close(),
  }
}
