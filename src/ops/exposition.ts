/**
 * Prints metrics in Prometheus' text format, version 0.0.4, and in that of OpenMetrics 1.0
 * (https://prometheus.io/docs/instrumenting/exposition_formats).
 */

/** The description of a metric. */
export interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly labels: readonly string[]
  /** A sentence that describes the metric, for `/metrics` and the reference. */
  readonly help: string
}

/** A value of a metric. */
export interface Sample {
  /** The values of the metric's labels, in order. */
  readonly labels: readonly string[]
  readonly value: number | HistogramValue | Quantiles
}

/** The value of a histogram. */
export interface HistogramValue {
  /** The upper bounds, ascending. */
  readonly bounds: readonly number[]
  /** The number of values in each bucket alone; one more element than there are bounds. */
  readonly counts: ArrayLike<number>
  readonly sum: number
  /** The latest request of each bucket that belongs to a recorded trace; undefined without any. */
  readonly exemplars?: readonly (Exemplar | null)[]
}

/** A request that is an example of the values in a bucket. */
export interface Exemplar {
  readonly traceId: string
  readonly spanId: string
  readonly value: number
}

/** The value of a summary. */
export interface Quantiles {
  /** The values by quantile, from 0 to 1; NaN without measurements. */
  readonly quantiles: ReadonlyMap<number, number>
  readonly sum: number
  readonly count: number
}

/** The text formats of Prometheus and of OpenMetrics 1.0, which has exemplars. */
export type MetricsFormat = 'prometheus' | 'openmetrics'

/** The media types of the formats. */
export const EXPOSITION_TYPES: Readonly<Record<MetricsFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

/** Prints a metric with its samples, even without any. */
export function printMetric(
  { name, type, labels, help }: Metric,
  samples: readonly Sample[],
  format: MetricsFormat = 'prometheus',
): string {
  const isOpen = format === 'openmetrics'
  // In OpenMetrics, the name of a counter does not include the suffix of its samples.
  const family = isOpen && type === 'counter' ? name.replace(/_total$/, '') : name
  let text = `# HELP ${family} ${escapeHelp(help)}\n# TYPE ${family} ${type}\n`
  for (const sample of samples) {
    const pairs = labels.map((label, index) => pair(label, sample.labels[index] ?? ''))
    if (typeof sample.value === 'number') text += line(name, pairs, sample.value)
    else if ('bounds' in sample.value)
      text += bucketLines(name, pairs, isOpen ? sample.value : { ...sample.value, exemplars: [] })
    else text += quantileLines(name, pairs, sample.value)
  }
  return text
}

/** The buckets are cumulative; the last one is the count. */
function bucketLines(
  name: string,
  pairs: readonly string[],
  { bounds, counts, sum, exemplars = [] }: HistogramValue,
): string {
  let text = ''
  let count = 0
  for (let index = 0; index <= bounds.length; index++) {
    count += counts[index] ?? 0
    const le = pair('le', printNumber(bounds[index] ?? Infinity))
    text += line(`${name}_bucket`, [...pairs, le], count, printExemplar(exemplars[index] ?? null))
  }
  return text + line(`${name}_sum`, pairs, sum) + line(`${name}_count`, pairs, count)
}

function quantileLines(name: string, pairs: readonly string[], { quantiles, sum, count }: Quantiles): string {
  const lines = [...quantiles].map(([quantile, value]) =>
    line(name, [...pairs, pair('quantile', printNumber(quantile))], value),
  )
  return lines.join('') + line(`${name}_sum`, pairs, sum) + line(`${name}_count`, pairs, count)
}

function line(name: string, pairs: readonly string[], value: number, exemplar = ''): string {
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${printNumber(value)}${exemplar}\n`
}

function printExemplar(exemplar: Exemplar | null): string {
  if (exemplar === null) return ''
  const { traceId, spanId, value } = exemplar
  return ` # {${pair('trace_id', traceId)},${pair('span_id', spanId)}} ${printNumber(value)}`
}

function pair(label: string, value: string): string {
  return `${label}="${value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')}"`
}

function escapeHelp(help: string): string {
  return help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

/** Prints a number in the format that Go parses. */
function printNumber(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}
