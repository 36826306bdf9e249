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
        'explain_endpoint is "on": every caller can see execution plans. Only tokens with the scope svc:explain ' +
        'see the estimates in them, but whether a plan uses an index still depends on the rows of all tenants.',
      fix: 'Set explain_endpoint = "admin" under [gateway] to show plans only to the admin token, or "off".',
    },
  ]
}
