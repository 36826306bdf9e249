/** A tenant's share of the connection pool, and findings about it. */
import type { Finding } from '../finding.ts'
import type { Config, GatewayConfig } from './config.ts'

type Shared = Pick<GatewayConfig, 'maxConnections' | 'tenantMaxConnections'>
type Streamed = Shared & Pick<GatewayConfig, 'tenantMaxStreams'>

/** Connections that a tenant can use while no other tenant uses any. */
export function tenantShare({ maxConnections, tenantMaxConnections }: Shared): number {
  if (tenantMaxConnections === null) return Math.ceil(maxConnections / 2)
  return tenantMaxConnections === 0 ? maxConnections : Math.min(tenantMaxConnections, maxConnections)
}

/**
 * Streams that a tenant can have open: one of its connections stays for its other requests, if it has two.
 */
export function tenantStreams(gateway: Streamed): number {
  if (gateway.tenantMaxStreams === 0) return tenantShare(gateway)
  return Math.max(1, Math.min(gateway.tenantMaxStreams, tenantShare(gateway) - 1))
}

/** Findings about how tenants share the pool. */
export function shareFindings({ gateway }: Pick<Config, 'gateway'>): readonly Finding[] {
  const { maxConnections, tenantMaxConnections } = gateway
  if (tenantShare(gateway) < maxConnections) return streamFindings(gateway)
  if (maxConnections === 1) {
    return [
      {
        level: 'warning',
        message:
          'the pool has a single connection (max_connections = 1): a slow statement of one tenant delays all others.',
        fix: 'Set max_connections to 2 or more.',
      },
    ]
  }
  return [
    {
      level: 'warning',
      message:
        `one tenant can use the whole pool (tenant_max_connections = ${tenantMaxConnections}, ` +
        `max_connections = ${maxConnections}): its slow statements delay all other tenants.`,
      fix: `Set tenant_max_connections to less than ${maxConnections}, or leave it out for half of the pool.`,
    },
  ]
}

/**
 * Streams hold their connections for as long as their clients read. One connection of the pool is never a
 * stream's.
 */
function streamFindings(gateway: Streamed): readonly Finding[] {
  const { maxConnections, tenantMaxStreams } = gateway
  const [share, streams, all] = [tenantShare(gateway), tenantStreams(gateway), maxConnections - 1]
  const findings: Finding[] = []
  if (streams >= all) {
    findings.push({
      level: 'warning',
      message:
        `one tenant can open every stream that the pool allows (${all} with max_connections = ` +
        `${maxConnections}): while it reads them, streams of all other tenants wait.`,
      fix: all === 1 ? 'Set max_connections to 3 or more.' : `Set tenant_max_streams to less than ${all}.`,
    })
  }
  if (streams >= share) {
    const larger = all === 1 ? 'max_connections to 3' : 'tenant_max_connections to 2'
    findings.push({
      level: 'note',
      message:
        `streams of a tenant can hold every connection that it can use (${share}): its other ` +
        'requests wait until one ends, for up to acquire_timeout_ms.',
      fix:
        tenantMaxStreams === 0 && share > 1
          ? `Set tenant_max_streams to less than ${share}.`
          : `Set ${larger} or more.`,
    })
  }
  return findings
}
