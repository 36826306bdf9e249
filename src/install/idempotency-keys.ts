/**
 * The responses to requests with an `Idempotency-Key` (docs/reference/writing.md#idempotency-keys), stored in
 * the transaction of the write. SQL of a request has no access to the table, and the functions that gateways
 * call require a ticket, which is always a bound parameter.
 *
 * A claim locks the key until the end of the transaction, so a concurrent request with the key is refused
 * at once. The primary key guarantees that only one transaction stores a response.
 */

/** SQLSTATEs of refused claims: a running transaction has the key; it has a response; unknown ticket. */
export const CLAIM_ERRORS = { inUse: 'SV001', known: 'SV002', ticket: 'SV003' } as const

/** Limit on the expired keys that one call of `svc.forget_keys` deletes. */
export const FORGOTTEN_AT_ONCE = 10_000

const SECURE = 'SECURITY DEFINER SET search_path = pg_catalog, pg_temp'

/** Each function with its parameters, for rights and ownership. */
export const KEY_FUNCTIONS = {
  check: 'svc.check_ticket(text)',
  claim: 'svc.claim_key(text, bytea)',
  store: 'svc.store_answer(text, bytea, text, bytea, integer, text, bytea, integer)',
  find: 'svc.find_answer(text, bytea)',
  count: 'svc.count_keys(text, text, integer)',
  forget: 'svc.forget_keys()',
} as const

/** The functions that gateways call during requests. */
export const CALLED_BY_REQUESTS: readonly string[] = [
  KEY_FUNCTIONS.claim,
  KEY_FUNCTIONS.store,
  KEY_FUNCTIONS.find,
  KEY_FUNCTIONS.count,
]

/** Creates the table and its functions. */
export const IDEMPOTENCY_KEYS: readonly string[] = [
  // Tickets of running gateways; only their hashes are stored.
  'CREATE TABLE IF NOT EXISTS svc.ticket (hash bytea PRIMARY KEY, valid_until timestamptz NOT NULL)',
  `CREATE TABLE IF NOT EXISTS svc.idempotency_key (
  id bytea PRIMARY KEY,
  tenant text NOT NULL,
  fingerprint bytea NOT NULL,
  status integer NOT NULL,
  headers text NOT NULL,
  body bytea,
  expires_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)`,
  `COMMENT ON TABLE svc.idempotency_key IS 'Responses to requests with an Idempotency-Key. id: a digest of ` +
    `tenant, user and key; fingerprint: a digest of the request.'`,
  'CREATE INDEX IF NOT EXISTS idempotency_key_tenant ON svc.idempotency_key (tenant, expires_at)',
  'CREATE INDEX IF NOT EXISTS idempotency_key_expiry ON svc.idempotency_key (expires_at)',
  `CREATE OR REPLACE FUNCTION svc.check_ticket(given text) RETURNS void
LANGUAGE plpgsql ${SECURE} AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM svc.ticket AS t WHERE t.hash = sha256(convert_to(given, 'UTF8'))
    AND t.valid_until > clock_timestamp()) THEN
    RAISE SQLSTATE '${CLAIM_ERRORS.ticket}' USING MESSAGE = 'idempotency keys are for gateways only';
  END IF;
END $$`,
  // If a serializable transaction read the table, it would conflict with every other one that stores a key on
  // the same index page. So it does not read it: storing the key fails if the key exists.
  `CREATE OR REPLACE FUNCTION svc.claim_key(given text, claimed bytea) RETURNS void
LANGUAGE plpgsql ${SECURE} AS $$
BEGIN
  PERFORM svc.check_ticket(given);
  IF NOT pg_try_advisory_xact_lock(('x' || encode(substr(claimed, 1, 8), 'hex'))::bit(64)::bigint) THEN
    RAISE SQLSTATE '${CLAIM_ERRORS.inUse}' USING MESSAGE = 'a running transaction has the idempotency key';
  END IF;
  IF current_setting('transaction_isolation') <> 'serializable' AND EXISTS (
    SELECT FROM svc.idempotency_key AS k WHERE k.id = claimed AND k.expires_at > clock_timestamp()
  ) THEN
    RAISE SQLSTATE '${CLAIM_ERRORS.known}' USING MESSAGE = 'the idempotency key has a response';
  END IF;
END $$`,
  `CREATE OR REPLACE FUNCTION svc.store_answer(given text, claimed bytea, of_tenant text, request bytea,
  with_status integer, with_headers text, with_body bytea, ttl_seconds integer) RETURNS void
LANGUAGE plpgsql ${SECURE} AS $$
BEGIN
  PERFORM svc.check_ticket(given);
  INSERT INTO svc.idempotency_key AS k (id, tenant, fingerprint, status, headers, body, expires_at)
    VALUES (claimed, of_tenant, request, with_status, with_headers, with_body,
      clock_timestamp() + make_interval(secs => ttl_seconds))
    ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, fingerprint = excluded.fingerprint,
      status = excluded.status, headers = excluded.headers, body = excluded.body, expires_at = excluded.expires_at
    WHERE k.expires_at <= clock_timestamp();
  IF NOT FOUND THEN
    RAISE SQLSTATE '${CLAIM_ERRORS.known}' USING MESSAGE = 'the idempotency key has a response';
  END IF;
END $$`,
  `CREATE OR REPLACE FUNCTION svc.find_answer(given text, claimed bytea)
  RETURNS TABLE (request text, with_status integer, with_headers text, with_body text)
LANGUAGE plpgsql ${SECURE} AS $$
BEGIN
  PERFORM svc.check_ticket(given);
  RETURN QUERY SELECT encode(k.fingerprint, 'hex'), k.status, k.headers, encode(k.body, 'hex')
    FROM svc.idempotency_key AS k WHERE k.id = claimed AND k.expires_at > clock_timestamp();
END $$`,
  `CREATE OR REPLACE FUNCTION svc.count_keys(given text, of_tenant text, up_to integer) RETURNS bigint
LANGUAGE plpgsql ${SECURE} AS $$
BEGIN
  PERFORM svc.check_ticket(given);
  RETURN (SELECT count(*) FROM (
    SELECT FROM svc.idempotency_key AS k WHERE k.tenant = of_tenant AND k.expires_at > clock_timestamp() LIMIT up_to
  ) AS counted);
END $$`,
  `CREATE OR REPLACE FUNCTION svc.forget_keys() RETURNS integer
LANGUAGE plpgsql ${SECURE} SET lock_timeout = '200ms' AS $$
DECLARE
  forgotten integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtext('svc.forget_keys')) THEN RETURN 0; END IF;
  DELETE FROM svc.idempotency_key WHERE id IN (
    SELECT k.id FROM svc.idempotency_key AS k WHERE k.expires_at <= clock_timestamp()
    ORDER BY k.expires_at LIMIT ${FORGOTTEN_AT_ONCE} FOR UPDATE SKIP LOCKED
  );
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  RETURN forgotten;
EXCEPTION WHEN lock_not_available THEN
  RETURN 0;
END $$`,
]
