/** `docs/reference/metrics.md`, written from the table of metrics. Its test compares the two, and rewrites the page with `-u`. */
import type { Metric } from './exposition.ts'
import { METRICS } from './metric-table.ts'

interface Row extends Metric {
  readonly section: string
}

export function printMetricsReference(): string {
  const rows: readonly Row[] = Object.values(METRICS)
  const sections = [...new Set(rows.map(row => row.section))]
  return `${HEAD}${sections.map(section => printSection(section, rows)).join('')}`
}

const HEAD = `# Metrics

<!-- Written from src/ops/metric-table.ts by \`npx vitest run src/ops/metrics-reference.test.ts -u\`; edit that table, not this page. -->

\`GET /metrics\` tells them in Prometheus's text format, version 0.0.4. [Monitoring](../guides/monitoring.md) says how to collect and show them.

- All are of one process, since its start. Units are seconds and bytes.
- \`route\` is a pattern like \`/api/{table}/{id}\`; \`none\` is what no route answers, and what is refused before its path is looked at. \`method\` is \`other\` where it is none of those that are served. No label
  has a table, a tenant, an id or a path in it, so there are at most some hundred lines, whatever the traffic.
- A histogram is told as \`_bucket\`, \`_sum\` and \`_count\`, a summary as \`{quantile="0.5"}\`, \`{quantile="0.95"}\`, \`{quantile="0.99"}\`, \`_sum\` and \`_count\`. Quantiles of several
  gateways cannot be averaged: take \`histogram_quantile\` over the buckets.
- Bytes that are no HTTP request, and CORS preflights, are answered before there is a route, and not counted.
`

function printSection(section: string, rows: readonly Row[]): string {
  const lines = rows.filter(row => row.section === section).map(printRow)
  return `\n## ${section}\n\n| Metric | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n${lines.join('\n')}\n`
}

function printRow({ name, type, labels, help }: Row): string {
  return `| \`${name}\` | ${type} | ${labels.map(label => `\`${label}\``).join(', ')} | ${help} |`
}
