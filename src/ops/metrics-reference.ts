/**
 * `docs/reference/metrics.md`, written from the table of metrics. Its test compares the two, and rewrites the
 * page with `-u`.
 */
import type { Metric } from './exposition.ts'
import { METRICS } from './metric-table.ts'

interface Row extends Metric {
  readonly section: string
}

/** Prints `docs/reference/metrics.md`. */
export function printMetricsReference(): string {
  const rows: readonly Row[] = Object.values(METRICS)
  const sections = [...new Set(rows.map(row => row.section))]
  return `${HEAD}${sections.map(section => printSection(section, rows)).join('')}`
}

const HEAD = `# Metrics

<!-- Written from src/ops/metric-table.ts by \`npx vitest run src/ops/metrics-reference.test.ts -u\`; edit that \
table, not this page. -->

\`GET /metrics\` returns all metrics in Prometheus's text format, version 0.0.4. \
[Monitoring](../guides/monitoring.md) explains how to collect and display them.

- Values are for one process, since its start; with several [workers](../guides/scaling.md#workers), they are \
sums over all of them. Units are seconds and bytes.
- \`route\` is a pattern such as \`/api/{table}/{id}\`. It is \`none\` if no route matches, and for requests that \
are rejected before the path is read. \`method\` is \`other\` for methods that are not supported.
- No label contains a table, a tenant, an id or a path, so the number of time series is limited to a few hundred.
- A histogram has the series \`_bucket\`, \`_sum\` and \`_count\`; a summary has \`{quantile="0.5"}\`, \
\`{quantile="0.95"}\`, \`{quantile="0.99"}\`, \`_sum\` and \`_count\`. Do not average quantiles of several \
gateways; use \`histogram_quantile\` over the buckets.
- Bytes that are not an HTTP request, and CORS preflights, are answered before routing, and are not counted.
`

function printSection(section: string, rows: readonly Row[]): string {
  const lines = rows.filter(row => row.section === section).map(printRow)
  return `\n## ${section}\n\n| Metric | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n${lines.join('\n')}\n`
}

function printRow({ name, type, labels, help }: Row): string {
  return `| \`${name}\` | ${type} | ${labels.map(label => `\`${label}\``).join(', ')} | ${help} |`
}
