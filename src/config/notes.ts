/** Notes of `svc check` on defaults that an operator may want to change. */
import type { Finding } from '../finding.ts'
import type { Config } from './config.ts'

export function configNotes({ gateway }: Config): readonly Finding[] {
  if (gateway.explainEndpoint !== 'on') return []
  return [
    {
      level: 'note',
      message:
        'explain_endpoint is "on": every caller may see plans, without figures unless their token has the scope ' +
        'svc:explain; whether an index or a scan is chosen still depends on all tenants’ rows',
      fix: 'Set explain_endpoint = "admin" under [gateway] to keep plans to the admin token, or "off".',
    },
  ]
}
