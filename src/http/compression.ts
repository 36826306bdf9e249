/**
 * Content codings of responses (RFC 9110, 8.4 and 12.5.3): which coding a client accepts, and the encoders.
 * Responses below `compress_min_bytes` are not compressed: they fit into one or two packets anyway, and
 * compressing them takes longer than sending them.
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

/** A content coding that the gateway supports. */
export type Coding = 'br' | 'gzip'

/**
 * The coding of a response. `none`: the response is never compressed. `identity`: it is not compressed for
 * this client but can be for another, so the response needs `Vary`.
 */
export type CodingChoice = Coding | 'identity' | 'none'

/** Chooses codings for responses. */
export interface Compression {
  /** Chooses a coding. `bytes` is the length of the body, or null for a stream. */
  choose(headers: IncomingHttpHeaders, answer: Answer, bytes: number | null): CodingChoice
}

/** Creates the chooser; `minBytes` 0 disables compression. */
export function createCompression(minBytes: number): Compression {
  const choices = new Map<string, Coding | 'identity'>()

  /** Clients of one kind send the same header, and there are few kinds, so the results are cached. */
  function codingFor(accepted: string): Coding | 'identity' {
    const known = choices.get(accepted)
    if (known !== undefined) return known
    if (choices.size >= CHOICES_MAX) choices.clear()
    const coding = negotiateEncoding(accepted)
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

/** Limit on the cached `Accept-Encoding` headers. */
const CHOICES_MAX = 100

/**
 * A response that has a coding or its `Vary` already, such as a page compressed on disk, is not compressed.
 */
function isCompressible({ headers }: Answer): boolean {
  if (headers.Vary?.includes('Accept-Encoding') || 'Content-Encoding' in headers) return false
  const type = headers['Content-Type'] ?? ''
  return type.startsWith('application/json') || type.startsWith('application/x-ndjson') || type.startsWith('text/')
}

/** Reports whether `no-transform` forbids a coding (RFC 9111, 5.2.1.6 and 5.2.2.6). */
export function mayNotTransform(cacheControl: string | undefined): boolean {
  return cacheControl !== undefined && /(^|[\s,])no-transform\s*(,|$)/i.test(cacheControl)
}

/** The coding that a client prefers (RFC 9110, 12.5.3). Between equal weights the faster coding wins. */
export function negotiateEncoding(accepted: string): Coding | 'identity' {
  const weights = new Map(accepted.split(',').map(weightOf))
  const weight = (coding: string) => weights.get(coding) ?? weights.get('*') ?? 0
  const br = weight('br')
  const gzipped = Math.max(weight('gzip'), weights.get('x-gzip') ?? 0)
  const best = Math.max(br, gzipped)
  // `identity` without an explicit weight is the last choice.
  if (best === 0 || best < (weights.get('identity') ?? 0)) return 'identity'
  return br >= gzipped ? 'br' : 'gzip'
}

/** An invalid weight counts as 0, so the client gets the uncompressed body. */
function weightOf(element: string): readonly [string, number] {
  const [name = '', ...parameters] = element.split(';')
  const quality = parameters.map(parameter => parameter.trim().toLowerCase()).find(text => text.startsWith('q='))
  const weight = quality === undefined ? 1 : Number(quality.slice('q='.length))
  return [name.trim().toLowerCase(), weight >= 0 && weight <= 1 ? weight : 0]
}

// Measured with rows as JSON (bench/compression.ts). Brotli at quality 1 produces the same size as gzip at 2
// in half the time; at quality 4 the result is an eighth smaller but takes three times as long.
const BROTLI_QUALITY = 1
const GZIP_LEVEL = 2

/** The encoder's window, 256 KiB. A larger one needs more memory and saves little. */
const BROTLI_WINDOW_BITS = 18

/**
 * Limit on bodies that are compressed in this thread. For small bodies the transfer to another thread takes
 * longer than the work.
 */
const AT_ONCE_BYTES_MAX = 16 * 1024

/** Size of the output buffers that a thread returns. */
const OUTPUT_BYTES = 64 * 1024

const GZIP: ZlibOptions = { level: GZIP_LEVEL }
const BROTLI: BrotliOptions = {
  params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW_BITS },
}

const gzipAside = promisify<Buffer, ZlibOptions, Buffer>(gzip)
const brotliAside = promisify<Buffer, BrotliOptions, Buffer>(brotliCompress)

/** Compresses a body, synchronously if it is small. */
export function compress(body: Buffer, coding: Coding): Buffer | Promise<Buffer> {
  if (body.length <= AT_ONCE_BYTES_MAX) return coding === 'br' ? brotliCompressSync(body, BROTLI) : gzipSync(body, GZIP)
  return coding === 'br'
    ? brotliAside(body, { ...BROTLI, chunkSize: OUTPUT_BYTES })
    : gzipAside(body, { ...GZIP, chunkSize: OUTPUT_BYTES })
}

/** Compresses each chunk completely, so that its rows can be decoded when it arrives. */
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
      // The body turns the error into its last line.
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
  /** Returns bytes from which everything encoded so far can be decoded. */
  encode(chunk: Buffer): Promise<Buffer>
  /** Returns the remaining bytes. */
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
    // Data that was not read yet also reaches the listener.
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
