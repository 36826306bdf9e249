/** A receiver of spans: OTLP over HTTP with JSON. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'

export interface CollectedSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number
  /** Nanoseconds since the epoch. */
  readonly start: bigint
  readonly end: bigint
  readonly attributes: Readonly<Record<string, unknown>>
  /** 2 for an error. */
  readonly status: number
  /** The attributes of the resource. */
  readonly resource: Readonly<Record<string, unknown>>
}

export interface Collector {
  readonly url: string
  /** The headers of each request. */
  readonly requests: readonly IncomingHttpHeaders[]
  readonly spans: readonly CollectedSpan[]
  close(): Promise<void>
}

/** The parts of OTLP's JSON that the tests use. */
interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

interface OtlpSpan extends Pick<CollectedSpan, 'name' | 'traceId' | 'spanId' | 'kind'> {
  readonly parentSpanId?: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly OtlpAttribute[]
  readonly status: { readonly code: number }
}

interface OtlpAttribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

/** Opens a receiver that answers with `status`. */
export async function openCollector(status = 200): Promise<Collector> {
  const requests: IncomingHttpHeaders[] = []
  const spans: CollectedSpan[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    requests.push(request.headers)
    const sent = Buffer.concat(chunks)
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent
    if (status === 200) spans.push(...spansOf(JSON.parse(body.toString())))
    response.writeHead(status, { 'Content-Type': 'application/json' }).end('{}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    requests,
    spans,
    close: () => new Promise(resolve => server.close(() => resolve())),
  }
}

function spansOf({ resourceSpans }: OtlpBody): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ name, traceId, spanId, parentSpanId, kind, status, ...span }) => ({
        ...{ name, traceId, spanId, parentSpanId, kind },
        ...{ start: BigInt(span.startTimeUnixNano), end: BigInt(span.endTimeUnixNano) },
        attributes: valuesOf(span.attributes),
        status: status.code,
        resource: valuesOf(resource.attributes),
      })),
    ),
  )
}

function valuesOf(attributes: readonly OtlpAttribute[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}
