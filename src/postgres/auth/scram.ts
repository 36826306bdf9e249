/**
 * SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677; PostgreSQL manual, 54.3.1): the password is never
 * sent, and the server proves knowledge of it before any of its messages is trusted.
 */
import { createHash, createHmac, pbkdf2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { ConnectError } from '../errors.ts'
import type { Authentication } from '../protocol/backend.ts'
import { writeAnswer, writeSaslInitialResponse } from '../protocol/frontend.ts'
import type { Writer } from '../protocol/writer.ts'
import { type ChannelBinding, SCRAM_SHA_256_PLUS } from './channel-binding.ts'
import type { Mechanism } from './mechanism.ts'
import { saslprep } from './saslprep.ts'

/** RFC 7677, 4: with fewer, a server in between could collect a proof that is cheap to guess from. */
const ITERATIONS_MIN = 4096
/** Limit on the work that a server can cause: half a second. */
const ITERATIONS_MAX = 1_000_000
/** Limits on salt and nonce; PostgreSQL's salts have 16 bytes and its nonces 24 characters. */
const SALT_BYTES_MAX = 1024
const NONCE_LENGTH_MAX = 1024

const derive = promisify(pbkdf2)

/** The steps of a conversation, each with a description for "waiting for …". */
const STEPS = {
  first: 'waiting for its offer',
  challenge: 'waiting for its challenge',
  final: 'waiting for its proof',
  finished: 'waiting for AuthenticationOk',
} as const

/** Creates the mechanism. `nonce` must be random for each connection: at least 18 bytes, base64. */
export function createScram(password: string, nonce: string, binding: ChannelBinding): Mechanism {
  const { mechanism, header } = binding
  // PostgreSQL uses the user of the startup packet and ignores this one.
  const clientFirst = `n=,r=${nonce}`
  let step: keyof typeof STEPS = 'first'
  let expectedSignature: Buffer | null = null

  function respond(challenge: Authentication, writer: Writer): Promise<void> | void {
    if (step === 'first' && challenge.method === 'sasl') {
      step = 'challenge'
      writeSaslInitialResponse(writer, mechanism, Buffer.from(header + clientFirst))
    } else if (step === 'challenge' && challenge.method === 'saslContinue') {
      step = 'final'
      return prove(challenge.data.toString('utf8'), writer)
    } else if (step === 'final' && challenge.method === 'saslFinal' && expectedSignature !== null) {
      checkServerFinal(challenge.data.toString('utf8'), expectedSignature)
      step = 'finished'
    } else {
      throw new ConnectError(`the server sent "${challenge.method}" out of turn during ${mechanism}`, false)
    }
  }

  async function prove(serverFirst: string, writer: Writer): Promise<void> {
    const { fullNonce, salt, iterations } = parseServerFirst(serverFirst, nonce)
    const channel = Buffer.concat([Buffer.from(header), binding.endPoint]).toString('base64')
    const withoutProof = `c=${channel},r=${fullNonce}`
    const proofs = await scramProofs(password, salt, iterations, `${clientFirst},${serverFirst},${withoutProof}`)
    expectedSignature = proofs.serverSignature
    writeAnswer(writer, Buffer.from(`${withoutProof},p=${proofs.clientProof.toString('base64')}`))
  }

  return {
    name: mechanism,
    respond,
    mayBeFollowed: false,
    isBound: mechanism === SCRAM_SHA_256_PLUS,
    get step() {
      return STEPS[step]
    },
    get finished() {
      return step === 'finished'
    },
  }
}

export interface ScramProofs {
  readonly clientProof: Buffer
  readonly serverSignature: Buffer
}

/** The formulas of RFC 5802, 3. */
export async function scramProofs(
  password: string,
  salt: Buffer,
  iterations: number,
  authMessage: string,
): Promise<ScramProofs> {
  const saltedPassword = await derive(saslprep(password), salt, iterations, 32, 'sha256')
  const clientKey = hmac(saltedPassword, 'Client Key')
  const storedKey = createHash('sha256').update(clientKey).digest()
  const clientSignature = hmac(storedKey, authMessage)
  const clientProof = Buffer.from(clientKey.map((byte, index) => byte ^ (clientSignature[index] as number)))
  return { clientProof, serverSignature: hmac(hmac(saltedPassword, 'Server Key'), authMessage) }
}

/**
 * The verifier that PostgreSQL stores for a password (PostgreSQL manual, pg_authid), so that the password
 * itself is not sent.
 */
export async function scramVerifier(password: string, salt: Buffer): Promise<string> {
  const saltedPassword = await derive(saslprep(password), salt, ITERATIONS_MIN, 32, 'sha256')
  const storedKey = createHash('sha256').update(hmac(saltedPassword, 'Client Key')).digest('base64')
  const serverKey = hmac(saltedPassword, 'Server Key').toString('base64')
  return `SCRAM-SHA-256$${ITERATIONS_MIN}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text, 'utf8').digest()
}

/** server-first-message = "r=" c-nonce s-nonce ",s=" base64 ",i=" posit-number */
function parseServerFirst(text: string, nonce: string): { fullNonce: string; salt: Buffer; iterations: number } {
  const match = /^r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/]+={0,2}),i=([1-9][0-9]{0,9})(?:,|$)/.exec(text)
  if (match === null) throw scramFailure('its first message is malformed')
  const [, fullNonce = '', saltText = '', iterationsText = ''] = match
  if (!fullNonce.startsWith(nonce) || fullNonce.length === nonce.length || fullNonce.length > NONCE_LENGTH_MAX) {
    throw scramFailure('it did not extend the nonce that was sent; this may be a replay of an earlier conversation')
  }
  const salt = Buffer.from(saltText, 'base64')
  if (salt.length > SALT_BYTES_MAX)
    throw scramFailure(`its salt has ${salt.length} bytes; the limit is ${SALT_BYTES_MAX}`)
  const iterations = Number(iterationsText)
  if (iterations < ITERATIONS_MIN || iterations > ITERATIONS_MAX) {
    throw scramFailure(`it requests ${iterations} iterations; accepted are ${ITERATIONS_MIN} to ${ITERATIONS_MAX}`)
  }
  return { fullNonce, salt, iterations }
}

/** server-final-message = "e=" error / "v=" base64 */
function checkServerFinal(text: string, expected: Buffer): void {
  const refusal = /^e=([a-z-]{1,64})(?:,|$)/.exec(text)?.[1]
  if (refusal !== undefined) throw scramFailure(`it refused the login: ${refusal}`)
  const match = /^v=([A-Za-z0-9+/]+={0,2})(?:,|$)/.exec(text)
  const signature = Buffer.from(match?.[1] ?? '', 'base64')
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) {
    throw scramFailure('it did not prove that it knows the password; it may not be the intended server')
  }
}

function scramFailure(what: string): ConnectError {
  return new ConnectError(`SCRAM with the server failed: ${what}`, true)
}
