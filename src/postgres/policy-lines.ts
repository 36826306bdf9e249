/** Describes the effective settings of a connection URL, with all defaults and without secrets. */
import { describePolicy } from './auth/policy.ts'
import { type ConnectionTarget, describeTarget, type TlsSettings } from './target.ts'

/** The lines of the description. */
export function policyLines(target: ConnectionTarget): readonly string[] {
  const { auth, gss } = target
  const binding = auth.scram ? `; channel_binding=${auth.channelBinding}` : ''
  return [
    describeTarget(target),
    `TLS: ${tlsLine(target)}`,
    `authentication: ${describePolicy(auth)}${binding}`,
    ...(gss === null
      ? []
      : [`Kerberos: gss_provider=${gss.provider}; target ${gss.target}; ${retryLine(gss.retries, gss.retryBaseMs)}`]),
    ...(gss === null ? [] : [`circuit: ${circuitLine(gss.circuit)}`]),
    `session: connect_timeout=${target.connectTimeoutMs / 1000}; ` +
      `application_name=${target.applicationName ?? 'svc'}; ` +
      `target_session_attrs=${target.sessionAttributes}${target.options === null ? '' : `; options=${target.options}`}`,
  ]
}

function tlsLine({ address, others, tls }: ConnectionTarget): string {
  if ([address, ...others].every(({ kind }) => kind === 'unix')) return 'none, over a Unix socket'
  const certificate = tls.certificate === null ? '' : `; client certificate ${tls.certificate.certPath}`
  return `sslmode=${tls.mode}, ${checksOf(tls)}${certificate}`
}

function checksOf({ mode, rootCertificates }: TlsSettings): string {
  const authorities =
    rootCertificates === null || rootCertificates === 'system' ? 'the authorities of the runtime' : rootCertificates
  if (mode === 'disable') return 'nothing is encrypted'
  if (mode === 'verify-full') return `certificate verified against ${authorities}, and the host name`
  const chain =
    rootCertificates === null ? 'the certificate is not verified' : `certificate verified against ${authorities}`
  return mode === 'prefer' ? `encrypted if the server supports it; ${chain}` : chain
}

function retryLine(retries: number, baseMs: number): string {
  return retries === 0 ? 'no retries' : `${retries} ${retries === 1 ? 'retry' : 'retries'} from ${baseMs} ms`
}

function circuitLine({ threshold, windowMs, cooldownMs }: NonNullable<ConnectionTarget['gss']>['circuit']): string {
  return `opens after ${threshold} failures within ${windowMs} ms, for ${cooldownMs} ms`
}
