/**
 * The connection URLs (docs/guides/database-connections.md): their problems, all at once, and a summary of
 * the settings they result in.
 */
import type { Config } from '../config/config.ts'
import type { Finding } from '../finding.ts'
import { kerberosFindings } from '../kerberos/findings.ts'
import { UrlError } from '../postgres/errors.ts'
import { policyLines } from '../postgres/policy-lines.ts'
import type { ConnectionTarget } from '../postgres/target.ts'
import { parseUrl } from '../postgres/url.ts'

interface UrlUse {
  readonly key: string
  /** How the setting can be written. */
  readonly written: string
  readonly consequence: string
}

const URLS = {
  databaseUrl: {
    key: 'database_url',
    written: 'database_url (DATABASE_URL)',
    consequence: 'The database cannot be reached',
  },
  realtimeDatabaseUrl: {
    key: 'realtime_database_url',
    written: 'realtime_database_url',
    consequence: 'The gateway cannot listen for schema changes',
  },
  feedUrl: {
    key: 'feed_url',
    written: 'feed_url',
    consequence: 'The change log and the outbox cannot be read',
  },
} as const

type UrlName = keyof typeof URLS

/** Finds problems without connecting; errors are problems that would prevent a connection. */
export async function connectionFindings(config: Config): Promise<readonly Finding[]> {
  const { gssModule } = config.gateway
  const findings: Finding[] = []
  const seen = new Set<string>()
  for (const { url, of } of urlsOf(config)) {
    const target = targetOf(url, of, findings)
    if (target === null) continue
    if (of.isReplica === true) findings.push(...replicaFindings(target, of))
    for (const warning of target.warnings) {
      findings.push({
        level: 'warning',
        message: `${of.key}: ${warning}`,
        fix: 'Add auth_mode=gssapi_only or auth_gssapi=true, or remove the parameter.',
      })
    }
    if (target.gss === null) continue
    for (const finding of await kerberosFindings(target.gss, gssModule, config)) {
      // Both URLs can refer to the same missing file.
      if (!seen.has(finding.message)) findings.push(finding)
      seen.add(finding.message)
    }
  }
  return findings
}

/** The summary for `svc check`. An unusable URL is a finding instead. */
export function connectionPolicies(config: Config): readonly string[] {
  return urlsOf(config).flatMap(({ url, of }) => {
    const target = targetOf(url, of, [])
    if (target === null) return []
    const [where = '', ...lines] = policyLines(target)
    const statements =
      of === URLS.databaseUrl ? [`statements: ${statementsLine(config.gateway.preparedStatements)}`] : []
    return [`${of.key}: ${where}`, ...[...lines, ...statements].map(line => `  ${line}`)]
  })
}

interface ConfiguredUrl {
  readonly url: string
  readonly of: UrlUse & { readonly isReplica?: true }
}

/** The URLs that are configured. */
function urlsOf({ gateway }: Config): readonly ConfiguredUrl[] {
  const single = (Object.keys(URLS) as UrlName[]).flatMap(name => {
    const url = gateway[name]
    return url === null ? [] : [{ url, of: URLS[name] }]
  })
  const replicas = gateway.replicas.map(({ url }, index): ConfiguredUrl => {
    const key = `replicas.${index}.url`
    return { url, of: { key, written: key, consequence: 'The replica cannot be reached', isReplica: true } }
  })
  return [...single, ...replicas]
}

/** A position belongs to one server, which must be a standby. */
function replicaFindings({ others, sessionAttributes }: ConnectionTarget, { key }: UrlUse): readonly Finding[] {
  if (others.length > 0) {
    const message = `${key} names several hosts, but each table of [[gateway.replicas]] is one server.`
    return [{ level: 'error', message, fix: 'Write a table for each host.' }]
  }
  if (sessionAttributes !== 'primary' && sessionAttributes !== 'read-write') return []
  const message = `${key} requires a primary (target_session_attrs=${sessionAttributes}), but a replica is a standby.`
  return [{ level: 'error', message, fix: 'Remove target_session_attrs from the URL.' }]
}

function targetOf(url: string, of: UrlUse, findings: Finding[]): ConnectionTarget | null {
  try {
    return parseUrl(url)
  } catch (error) {
    if (!(error instanceof UrlError)) throw error
    const { written, consequence } = of
    findings.push({ level: 'error', message: `${consequence}: ${error.message}`, fix: `See ${written}.` })
    return null
  }
}

function statementsLine(prepared: boolean): string {
  return prepared ? 'prepared and pipelined' : 'neither prepared nor pipelined, as transaction poolers require'
}
