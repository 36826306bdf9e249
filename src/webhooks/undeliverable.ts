/**
 * Triggers whose webhooks will be refused, as far as their URLs tell before a name is looked up. That is no reason not to start: what counts is the
 * address that is connected to, and the API works without them.
 */
import type { Finding } from '../finding.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import type { Trigger } from './trigger.ts'

export function undeliverable(
  triggers: readonly Trigger[],
  { whyHostRefused }: Pick<AddressGuard, 'whyHostRefused'>,
): readonly Finding[] {
  return triggers.flatMap(({ name, enabled, url }) => {
    const why = enabled ? whyHostRefused(url.hostname) : null
    if (why === null) return []
    return [{ level: 'warning', message: `Webhooks of "${name}" cannot be delivered: ${why}.`, fix: FIX }]
  })
}

const FIX = 'Mend webhook_url in the file of events_path, or list the address in webhook_allow.'
