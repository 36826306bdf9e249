/**
 * Parses Prometheus's text format 0.0.4 and rejects whatever a strict parser would
 * (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format). Also rejects the names
 * that `promtool check metrics` warns about.
 */

export interface Family {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: readonly Sample[]
}

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const NAME = /^[a-z_][a-z0-9_]*$/
const NUMBER = /^(?:NaN|[+-]?Inf|[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/

/** The metrics by name. Throws an error that quotes the invalid line. */
export function parseExposition(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end with a line feed')
  const families = new Map<string, Family & { readonly samples: Sample[] }>()
  const seen = new Set<string>()
  let current: (Family & { readonly samples: Sample[] }) | null = null
  let helped: { readonly name: string; readonly help: string } | null = null
  for (const line of text.slice(0, -1).split('\n')) {
    const refuse = (why: string): never => {
      throw new Error(`${why}: ${line}`)
    }
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line)
    if (comment !== null) {
      const [, kind, name = '', rest = ''] = comment
      if (!NAME.test(name)) refuse('no name')
      if (kind === 'HELP') {
        if (families.has(name)) refuse('told twice')
        if (/\\(?![\\n])/.test(rest)) refuse('an invalid escape sequence')
        helped = { name, help: rest }
        current = null
      } else {
        if (helped?.name !== name) return refuse('TYPE without its HELP before it')
        current = { name, type: rest, help: helped.help, samples: [] }
        lintName(current, refuse)
        families.set(name, current)
      }
      continue
    }
    if (current === null) return refuse('a sample before its HELP and TYPE')
    const sample = parseSample(line, refuse)
    if (!namesOf(current).includes(sample.name)) refuse(`the sample does not belong to ${current.name}`)
    const series = JSON.stringify([sample.name, Object.entries(sample.labels).sort()])
    if (seen.has(series)) refuse('a duplicate series')
    seen.add(series)
    current.samples.push(sample)
  }
  for (const family of families.values()) checkFamily(family)
  return families
}

function parseSample(line: string, refuse: (why: string) => never): Sample {
  const match = /^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$/.exec(line)
  if (match === null) return refuse('no sample')
  const [, name = '', inside = '', number = ''] = match
  if (!NUMBER.test(number)) refuse('no number')
  const labels: Record<string, string> = {}
  let rest = inside
  while (rest !== '') {
    const pair = /^([a-z_][a-z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,(?=.)|$)/.exec(rest)
    if (pair === null) return refuse('no label')
    const [whole, label = '', value = ''] = pair
    if (label in labels) refuse('a duplicate label')
    labels[label] = value.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
    rest = rest.slice(whole.length)
  }
  return { name, labels, value: number.endsWith('Inf') ? Number(number.replace('Inf', 'Infinity')) : Number(number) }
}

function namesOf({ name, type }: Family): readonly string[] {
  if (type === 'histogram') return [`${name}_bucket`, `${name}_sum`, `${name}_count`]
  return type === 'summary' ? [name, `${name}_sum`, `${name}_count`] : [name]
}

function lintName({ name, type }: Family, refuse: (why: string) => never): void {
  if (!['counter', 'gauge', 'histogram', 'summary'].includes(type)) refuse('no type')
  if (name.endsWith('_total') !== (type === 'counter')) refuse('names of counters, and only these, must end in _total')
  if (/_(?:count|sum|bucket)$/.test(name)) refuse('a suffix that is reserved for histograms')
  if (/counter|gauge|histogram|summary/.test(name)) refuse('the name contains the type')
  if (/_(?:ms|secs?|milliseconds|minutes|kb|mb)(?:_|$)/.test(name)) refuse('the unit is not a base unit')
}

function checkFamily(family: Family): void {
  const refuse = (why: string): never => {
    throw new Error(`${family.name}: ${why}`)
  }
  const { type, samples } = family
  for (const { labels, value } of samples) {
    if ('le' in labels && type !== 'histogram') refuse('the label le is reserved for histograms')
    if ('quantile' in labels && type !== 'summary') refuse('the label quantile is reserved for summaries')
    if (type === 'counter' && !(value >= 0)) refuse('a counter cannot be negative')
  }
  if (type !== 'histogram') return
  const series = new Map<string, Sample[]>()
  for (const sample of samples) {
    const { le: _, ...others } = sample.labels
    const key = JSON.stringify(others)
    series.set(key, [...(series.get(key) ?? []), sample])
  }
  for (const of of series.values()) {
    const buckets = of.filter(({ name }) => name.endsWith('_bucket'))
    const bounds = buckets.map(({ labels }) => (labels.le === '+Inf' ? Infinity : Number(labels.le)))
    if (bounds.some((bound, index) => !(bound > (bounds[index - 1] ?? -Infinity)))) refuse('bounds ascend')
    if (bounds.at(-1) !== Infinity) refuse('the last bucket must be +Inf')
    if (buckets.some(({ value }, index) => value < (buckets[index - 1]?.value ?? 0)))
      refuse('buckets must be cumulative')
    const count = of.find(({ name }) => name.endsWith('_count'))?.value
    if (count !== buckets.at(-1)?.value) refuse('the count must equal the last bucket')
    if (!of.some(({ name }) => name.endsWith('_sum'))) refuse('the sum is missing')
  }
}
