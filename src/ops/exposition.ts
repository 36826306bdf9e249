/**
 * Metrics as text that Prometheus reads: its text format, version 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
 */

export interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly labels: readonly string[]
  /** One sentence, for whoever reads the metrics and for the reference. */
  readonly help: string
}

export interface Sample {
  /** One for each label of the metric, in their order. */
  readonly labels: readonly string[]
  readonly value: number | Buckets | Quantiles
}

/** The value of a histogram. */
export interface Buckets {
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[]
  /** How many fell in each bucket and in no lower one; one more than there are bounds. */
  readonly counts: ArrayLike<number>
  readonly sum: number
}

/** The value of a summary. */
export interface Quantiles {
  /** By quantile, which is from 0 to 1; NaN where nothing was measured. */
  readonly quantiles: ReadonlyMap<number, number>
  readonly sum: number
  readonly count: number
}

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** One metric with its samples; a metric without any is told of all the same. */
export function printMetric({ name, type, labels, help }: Metric, samples: readonly Sample[]): string {
  let text = `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`
  for (const sample of samples) {
    const pairs = labels.map((label, index) => pair(label, sample.labels[index] ?? ''))
    if (typeof sample.value === 'number') text += line(name, pairs, sample.value)
    else if ('bounds' in sample.value) text += bucketLines(name, pairs, sample.value)
    else text += quantileLines(name, pairs, sample.value)
  }
  return text
}

/** A bucket counts what lies in it and below it; the last is the count. */
function bucketLines(name: string, pairs: readonly string[], { bounds, counts, sum }: Buckets): string {
  let text = ''
  let count = 0
  for (let index = 0; index <= bounds.length; index++) {
    count += counts[index] ?? 0
    text += line(`${name}_bucket`, [...pairs, pair('le', printNumber(bounds[index] ?? Infinity))], count)
  }
  return text + line(`${name}_sum`, pairs, sum) + line(`${name}_count`, pairs, count)
}

function quantileLines(name: string, pairs: readonly string[], { quantiles, sum, count }: Quantiles): string {
  const lines = [...quantiles].map(([quantile, value]) =>
    line(name, [...pairs, pair('quantile', printNumber(quantile))], value),
  )
  return lines.join('') + line(`${name}_sum`, pairs, sum) + line(`${name}_count`, pairs, count)
}

function line(name: string, pairs: readonly string[], value: number): string {
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${printNumber(value)}\n`
}

function pair(label: string, value: string): string {
  return `${label}="${value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')}"`
}

function escapeHelp(help: string): string {
  return help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

/** As Go reads it. */
function printNumber(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}
