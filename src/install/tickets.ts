/**
 * Tickets of running gateways. A statement that carries one comes from a gateway, not from SQL of a request;
 * only hashes are stored (idempotency-keys.ts).
 */

/** How long a ticket is valid after its last registration. Gateways renew theirs regularly. */
const VALID_SECONDS = 600

/** The interval at which a gateway renews its ticket. */
export const RENEWAL_INTERVAL_MS: number = (VALID_SECONDS * 1_000) / 5

/** Registers or renews the ticket `$1`. */
export const REGISTER_TICKET: string = `INSERT INTO svc.ticket AS t (hash, valid_until)
VALUES (pg_catalog.sha256(pg_catalog.convert_to($1, 'UTF8')), now() + interval '${VALID_SECONDS} seconds')
ON CONFLICT (hash) DO UPDATE SET valid_until = excluded.valid_until`

/** Removes the tickets of gateways that no longer run. */
export const EXPIRE_TICKETS = 'DELETE FROM svc.ticket WHERE valid_until < now()'
