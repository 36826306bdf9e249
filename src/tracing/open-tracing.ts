/**
 * Opens the tracing that the configuration asks for. The packages of OpenTelemetry are optional and loaded
 * only then (docs/guides/tracing.md#enable-tracing).
 */
import { randomUUID } from 'node:crypto'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import type { TracingConfig } from '../config/config.ts'
import type { Emit } from '../events.ts'
import { VERSION } from '../version.ts'
import { createTracing, type Tracing, type TracingStats } from './tracing.ts'

/** The packages, as a function so that a test can leave some out. */
export interface TracingPackages {
  readonly api: () => Promise<typeof import('@opentelemetry/api')>
  readonly sdk: () => Promise<typeof import('@opentelemetry/sdk-trace')>
  readonly resources: () => Promise<typeof import('@opentelemetry/resources')>
  readonly exporter: () => Promise<typeof import('@opentelemetry/exporter-trace-otlp-http')>
}

const PACKAGES: TracingPackages = {
  api: () => import('@opentelemetry/api'),
  sdk: () => import('@opentelemetry/sdk-trace'),
  resources: () => import('@opentelemetry/resources'),
  exporter: () => import('@opentelemetry/exporter-trace-otlp-http'),
}

const NEEDED =
  '@opentelemetry/api@1 @opentelemetry/sdk-trace@2 @opentelemetry/resources@2 ' +
  '@opentelemetry/exporter-trace-otlp-http@0.223'

/** Tracing is enabled, and what it needs is missing. */
export class TracingSetupError extends Error {
  override name = 'TracingSetupError'
}

/** The name of the gateway's spans in a trace. */
const SCOPE = 'svc-gateway'

/** Limit on the spans that wait to be sent; more are dropped. */
const WAITING_SPANS_MAX = 4_096

/** Interval of warnings about a collector that does not accept spans. */
const WARNING_INTERVAL_MS = 60_000

/** The dependencies of `openTracing`. */
export interface OpenTracingParts {
  readonly emit: Emit
  readonly clock: () => number
  readonly now: () => number
  readonly packages?: TracingPackages
}

/** Opens the tracing; null if it is not enabled. Rejects with `TracingSetupError`. */
export async function openTracing(
  config: TracingConfig,
  { emit, clock, now, packages = PACKAGES }: OpenTracingParts,
): Promise<Tracing | null> {
  if (!config.enabled) return null
  const { api, sdk, resources, exporter } = await load(packages, config.otlpEndpoint !== null)
  const parts = { api, clock, now }
  if (sdk === null || resources === null || exporter === null || config.otlpEndpoint === null) {
    const tracer = api.trace.getTracer(SCOPE, VERSION)
    return createTracing({ ...parts, tracer, stats: () => ({ exported: 0, failed: 0 }), close: async () => {} })
  }
  const counted = countedExporter(
    new exporter.OTLPTraceExporter({
      url: config.otlpEndpoint,
      headers: Object.fromEntries(config.otlpHeaders ?? []),
    }),
    { endpoint: config.otlpEndpoint, emit, now },
  )
  const provider = new sdk.TracerProvider({
    resource: resources.resourceFromAttributes({
      'service.name': config.serviceName,
      'service.version': VERSION,
      'service.instance.id': randomUUID(),
    }),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.TraceIdRatioBasedSampler(config.sampleRatio) }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: counted.exporter, maxQueueSize: WAITING_SPANS_MAX })],
  })
  return createTracing({
    ...parts,
    tracer: provider.getTracer(SCOPE, VERSION),
    stats: counted.stats,
    // The failure of the last export was reported.
    close: () => provider.shutdown().catch(() => {}),
  })
}

async function load(packages: TracingPackages, exports: boolean) {
  try {
    const api = await packages.api()
    if (!exports) return { api, sdk: null, resources: null, exporter: null }
    const [sdk, resources, exporter] = await Promise.all([packages.sdk(), packages.resources(), packages.exporter()])
    return { api, sdk, resources, exporter }
  } catch (error) {
    throw new TracingSetupError(
      'gateway.tracing is enabled, but a package of OpenTelemetry cannot be loaded ' +
        `(${(error as Error).message.split('\n')[0]}). Install the packages beside the gateway: npm install ${NEEDED}`,
      { cause: error },
    )
  }
}

/** The exporter, with its outcomes counted. Failures are reported, but not each of them. */
function countedExporter(
  exporter: SpanExporter,
  { endpoint, emit, now }: { readonly endpoint: string; readonly emit: Emit; readonly now: () => number },
): { readonly exporter: SpanExporter; readonly stats: () => TracingStats } {
  const counts = { exported: 0, failed: 0 }
  let warnedAt = Number.NEGATIVE_INFINITY
  const report = (error: Error | undefined): void => {
    if (now() - warnedAt < WARNING_INTERVAL_MS) return
    warnedAt = now()
    emit({
      kind: 'warning',
      message: `spans cannot be sent to ${endpoint}: ${error?.message ?? 'the collector did not accept them'}`,
      fix: 'Check that gateway.tracing.otlp_endpoint is the address of an OTLP receiver for HTTP, and its headers.',
    })
  }
  return {
    exporter: {
      export(spans: ReadableSpan[], done) {
        exporter.export(spans, result => {
          const isSent = result.error === undefined && result.code === 0
          counts[isSent ? 'exported' : 'failed'] += spans.length
          if (!isSent) report(result.error)
          done(result)
        })
      },
      shutdown: () => exporter.shutdown(),
      forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    },
    stats: () => counts,
  }
}
