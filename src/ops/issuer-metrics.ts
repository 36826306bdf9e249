/** Metrics of the keys of identity providers, one series for each configured provider. */
import type { IssuerStats } from '../identity/issuers.ts'
import type { CollectedSamples, MetricKey } from './metric-table.ts'

/** Converts the statistics of issuers to samples. */
export function collectIssuers(stats: readonly IssuerStats[]): CollectedSamples<Extract<MetricKey, `issuer${string}`>> {
  return {
    issuerKeys: stats.map(({ issuer, keys }) => ({ labels: [issuer], value: keys })),
    issuerStale: stats.map(({ issuer, staleMs }) => ({ labels: [issuer], value: staleMs / 1_000 })),
    issuerFetches: stats.flatMap(({ issuer, fetched, failed }) => [
      { labels: [issuer, 'fetched'], value: fetched },
      { labels: [issuer, 'failed'], value: failed },
    ]),
  }
}
