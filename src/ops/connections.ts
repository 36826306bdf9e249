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
  for (const name of Object.keys(URLS) as UrlName[]) {
    const target = targetOf(config, name, findings)
    if (target === null) continue
    for (const warning of target.warnings) {
      findings.push({
        level: 'warning',
        message: `${URLS[name].key}: ${warning}`,
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
  return (Object.keys(URLS) as UrlName[]).flatMap(name => {
    const target = targetOf(config, name, [])
    if (target === null) return []
    const [where = '', ...lines] = policyLines(target)
    const statements =
      name === 'databaseUrl' ? [`statements: ${statementsLine(config.gateway.preparedStatements)}`] : []
    return [`${URLS[name].key}: ${where}`, ...[...lines, ...statements].map(line => `  ${line}`)]
  })
}

function targetOf({ gateway }: Config, name: UrlName, findings: Finding[]): ConnectionTarget | null {
  const url = gateway[name]
  if (url === null) return null
  try {
    return parseUrl(url)
  } catch (error) {
    if (!(error instanceof UrlError)) throw error
    const { written, consequence } = URLS[name]
    findings.push({ level: 'error', message: `${consequence}: ${error.message}`, fix: `See ${written}.` })
    return null
  }
}

function statementsLine(prepared: boolean): string {
  return prepared ? 'prepared and pipelined' : 'neither prepared nor pipelined, as transaction poolers require'
}
