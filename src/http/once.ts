/**
 * Requests whose statements share a transaction: those with an `Idempotency-Key`
 * (docs/reference/writing.md#idempotency-keys), and requests of several steps that take effect together or
 * not at all. The request passes the usual stages. With a key, the transaction begins with a claim on it and
 * ends by storing the response. The claim is sent with the first statement, so rights and policies are judged
 * before.
 */
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import { headerOf } from '../rest/header.ts'
import type { RequestContext } from '../rest/steps.ts'
import { describeViolation } from '../rest/violation.ts'
import type { IdempotencyKeys, KeyClaim } from '../run/idempotency.ts'
import { KnownFailures, PartOfWork, RestartError } from '../run/joint-transaction.ts'
import type { Runner } from '../run/run.ts'

/** Limit on the characters of a key. */
const KEY_CHARACTERS_MAX = 255

/** The methods that take a key; others have no effect to repeat. */
const METHODS: readonly string[] = ['POST', 'PATCH', 'DELETE']

/** The headers that change what a write does or answers. */
const SIGNIFICANT_HEADERS = [
  'content-type',
  'prefer',
  'x-upsert',
  'x-on-conflict',
  'x-max-affected',
  'x-svc-result-format',
  'if-match',
]

/** Limit on how often a request is run again because a statement was replaced, or its key has expired. */
const RESTARTS_MAX = 5

/**
 * The claim of a request; null without a key.
 * @throws {GatewayError} `PARSE_ERROR` for an invalid key, `NOT_IMPLEMENTED` if keys cannot be stored.
 */
export function claimOf({ incoming, identity }: RequestContext, keys: IdempotencyKeys): KeyClaim | null {
  if (incoming.headers['idempotency-key'] === undefined || !METHODS.includes(incoming.method)) return null
  if (incoming.upload !== undefined) {
    throw new GatewayError(
      'PARSE_ERROR',
      'an import cannot have an Idempotency-Key, because its body is read while it is written; leave out the key',
    )
  }
  const { method, path, query, headers, body } = incoming
  const significant = SIGNIFICANT_HEADERS.map(name => headerOf(headers, name) ?? '')
  return keys.claim(identity, keyOf(headers), [method, path, query, ...significant, body])
}

/** A string of RFC 8941, 3.3.3, or the same characters without the quotes and without spaces. */
function keyOf(headers: Incoming['headers']): string {
  const given = (headerOf(headers, 'idempotency-key') ?? '').trim()
  const quoted = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(given)
  const key = quoted?.[1]?.replace(/\\(["\\])/g, '$1') ?? (/^[\x21\x23-\x7e][\x21-\x7e]*$/.test(given) ? given : '')
  if (key !== '' && key.length <= KEY_CHARACTERS_MAX) return key
  throw new GatewayError(
    'PARSE_ERROR',
    `Idempotency-Key must be one key of 1 to ${KEY_CHARACTERS_MAX} visible ASCII characters, such as a UUID`,
  )
}

/** Answers a request whose statements share a transaction; `claim` is null without an idempotency key. */
export async function answerTogether(
  asker: RequestContext,
  claim: KeyClaim | null,
  runner: Pick<Runner, 'open'>,
  answer: () => Promise<Answer>,
): Promise<Answer> {
  const known = new KnownFailures()
  for (let restarts = 0; restarts < RESTARTS_MAX; restarts++) {
    const answered = await attempt(asker, claim, runner, known, answer)
    if (answered !== null) return answered
  }
  throw restartedTooOften()
}

function restartedTooOften(): GatewayError {
  return new GatewayError('UNAVAILABLE', 'the request had to be run again too often; nothing was changed, try again', {
    headers: { 'Retry-After': '1' },
  })
}

/**
 * Runs the steps of a request in a transaction that is rolled back. No notification is sent.
 * @throws the error that the request would have.
 */
export async function rehearse(
  { incoming, identity, view }: RequestContext,
  runner: Pick<Runner, 'open'>,
  run: () => Promise<void>,
): Promise<void> {
  const { usage } = incoming
  const { worked } = usage
  const known = new KnownFailures()
  for (let restarts = 0; restarts < RESTARTS_MAX; restarts++) {
    const transaction = await runner.open(identity, { isolation: null, known, claim: null }, worked)
    incoming.onAbort(() => transaction.cancel())
    usage.worked = new PartOfWork(worked, transaction.part(0, true))
    try {
      await run()
      await transaction.rehearse().catch(error => {
        throw describeViolation(error, view)
      })
      return
    } catch (error) {
      await transaction.rollback()
      if (!(error instanceof RestartError)) throw error
    } finally {
      usage.worked = worked
    }
  }
  throw restartedTooOften()
}

/** Runs the request; null if it must be run again. */
async function attempt(
  { incoming, identity, view }: RequestContext,
  claim: KeyClaim | null,
  runner: Pick<Runner, 'open'>,
  known: KnownFailures,
  ask: () => Promise<Answer>,
): Promise<Answer | null> {
  const { usage } = incoming
  const { worked } = usage
  const transaction = await runner.open(identity, { isolation: null, known, claim: claim?.command ?? null }, worked)
  incoming.onAbort(() => transaction.cancel())
  usage.worked = new PartOfWork(worked, transaction.part(0, true))
  try {
    const answer = await ask()
    if (claim !== null) await transaction.claim()
    const last = claim === null ? [] : [await claim.storing(answer, worked)]
    await transaction.commit(last).catch(error => {
      throw describeViolation(error, view)
    })
    return answer
  } catch (error) {
    await transaction.rollback()
    if (claim !== null && transaction.refusal !== null) {
      await transaction.repeated()
      return claim.resolve(transaction.refusal, worked)
    }
    if (error instanceof RestartError) return null
    throw error
  } finally {
    usage.worked = worked
  }
}
