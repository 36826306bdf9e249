/** Reads Prometheus's text format, as `GET /metrics` writes it. */

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export function parseExposition(text: string): readonly Sample[] {
  return text.split('\n').flatMap(line => {
    const [, name, labels = '', value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === undefined || value === undefined) return []
    return [{ name, labels: labelsOf(labels), value: value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value) }]
  })
}

function labelsOf(text: string): Sample['labels'] {
  return Object.fromEntries(
    [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = '', value = '']) => [
      name,
      value.replace(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter)),
    ]),
  )
}

/** The sum of the samples with this name, and with these labels if any are given. */
export function sumOf(samples: readonly Sample[], name: string, labels: Sample['labels'] = {}): number {
  const wanted = Object.entries(labels)
  return samples
    .filter(sample => sample.name === name && wanted.every(([key, value]) => sample.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0)
}

/** The counts of a histogram's buckets over all labels, by upper bound. */
export function bucketsOf(samples: readonly Sample[], name: string): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (const { name: of, labels, value } of samples) {
    if (of !== `${name}_bucket`) continue
    const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le)
    counts.set(bound, (counts.get(bound) ?? 0) + value)
  }
  return counts
}

/**
 * The quantile of the requests between two readings of a histogram, estimated within its bucket as
 * `histogram_quantile` does; null without requests.
 */
export function quantileBetween(
  before: ReadonlyMap<number, number>,
  after: ReadonlyMap<number, number>,
  quantile: number,
): number | null {
  const bounds = [...after.keys()].toSorted((a, b) => a - b)
  const counts = bounds.map(bound => (after.get(bound) ?? 0) - (before.get(bound) ?? 0))
  const total = counts.at(-1) ?? 0
  if (total <= 0) return null
  const rank = quantile * total
  const at = counts.findIndex(count => count >= rank)
  const upper = bounds[at] ?? Number.POSITIVE_INFINITY
  const lower = at > 0 ? (bounds[at - 1] ?? 0) : 0
  if (upper === Number.POSITIVE_INFINITY) return lower
  const below = at > 0 ? (counts[at - 1] ?? 0) : 0
  const within = (counts[at] ?? 0) - below
  return within === 0 ? upper : lower + (upper - lower) * ((rank - below) / within)
}
