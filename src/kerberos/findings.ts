/** The problems that prevent Kerberos from working as configured, for startup and `svc check`. */
import type { Finding } from '../finding.ts'
import type { GssSettings } from '../postgres/auth/gss-attempts.ts'
import { openProvider } from './open.ts'
import { type KerberosFiles, preflight } from './preflight.ts'
import { KerberosSetupError } from './setup-error.ts'

/** The problems of the Kerberos setup of one target; empty if the target does not use Kerberos. */
export async function kerberosFindings(
  settings: GssSettings,
  gssModule: string | null,
  files: KerberosFiles,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  try {
    await openProvider(settings, gssModule)
  } catch (error) {
    if (!(error instanceof KerberosSetupError)) throw error
    findings.push({ level: 'error', message: error.message, fix: error.fix })
  }
  if (settings.provider !== 'linux_krb5') return findings
  return [...findings, ...(await preflight(files, process.getuid?.() ?? 0))]
}
