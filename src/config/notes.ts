/** Notes of `svc check` on defaults that an operator may want to change. */
import type { Finding } from '../finding.ts'
import type { Config } from './config.ts'

/** The notes on a configuration. */
export function configNotes({ gateway }: Config): readonly Finding[] {
  if (gateway.explainEndpoint !== 'on') return []
  return [
    {
      level: 'note',
      message:
        'explain_endpoint is "on": every caller can see execution plans, without estimates unless their token ' +
        'has the scope ' +
        'svc:explain; the choice between an index and a scan still depends on all tenants’ rows',
      fix: 'Set explain_endpoint = "admin" under [gateway] to show plans only to the admin token, or "off".',
    },
  ]
}
