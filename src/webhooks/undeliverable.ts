/**
 * Finds triggers whose URLs will be refused, as far as this is known before a DNS lookup. Only a warning: the
 * address is checked again for each connection, and the API works without them.
 */
import type { Finding } from '../finding.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import type { Trigger } from './trigger.ts'

/** One warning for each enabled trigger whose host is refused. */
export function undeliverable(
  triggers: readonly Trigger[],
  { hostRefusalReason }: Pick<AddressGuard, 'hostRefusalReason'>,
): readonly Finding[] {
  return triggers.flatMap(({ name, enabled, url }) => {
    const why = enabled ? hostRefusalReason(url.hostname) : null
    if (why === null) return []
    return [{ level: 'warning', message: `Webhooks of "${name}" cannot be delivered: ${why}.`, fix: FIX }]
  })
}

const FIX = 'Correct webhook_url in the events file, or add the address to webhook_allow.'
