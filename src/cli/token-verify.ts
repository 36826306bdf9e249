/**
 * `svc token verify`: prints the checks that a token passes, the check that rejects it, and the session
 * settings.
 */
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import type { Emit } from '../events.ts'
import { BootError } from '../gateway/boot.ts'
import { openProviders } from '../gateway/providers.ts'
import { openRevocations, READ_TIMEOUT_MS, type Revocations } from '../gateway/revocations.ts'
import { type Denylist, NOTHING_DENIED } from '../identity/denylist.ts'
import { type Explanation, explainToken } from '../identity/explanation.ts'
import { createTokenVerifier } from '../identity/jwt.ts'
import { openDatabase } from './database.ts'
import { printFailure } from './failure.ts'
import { EXIT, type World } from './world.ts'

export interface VerifyCommand {
  readonly file: string | undefined
  readonly token: string
}

const EXIT_OF: Readonly<Record<Explanation['outcome'], number>> = {
  accepted: EXIT.ok,
  refused: EXIT.failed,
  unavailable: EXIT.usage,
}

export async function verify({ file, token }: VerifyCommand, world: World): Promise<number> {
  const { config } = loadConfig({ ...world, file })
  const issuers = await openProviders(config, event => {
    if (event.kind !== 'identity' || !('error' in event.detail)) return
    world.error(`issuer "${event.detail.issuer}": ${event.event}: ${(event.detail.error as Error).message}`)
  })
  try {
    const emit: Emit = event => {
      if (event.kind === 'warning') world.error(event.message)
    }
    const [{ denylist, remarks }] = await Promise.all([readDenylist(config, emit), issuers.fetched()])
    const tokens = createTokenVerifier(config, issuers.all, () => Date.now(), denylist)
    const { outcome, lines } = await explainToken(tokens, token.trim(), remarks)
    for (const line of lines) world.out(line)
    return EXIT_OF[outcome]
  } finally {
    issuers.close()
  }
}

interface ReadDenylist {
  readonly denylist: Denylist
  readonly remarks: readonly string[]
}

/** Reads the current table. Without a database, the token is explained without it, and the output says so. */
async function readDenylist(config: Config, emit: Emit): Promise<ReadDenylist> {
  const { databaseUrl, jwtDenylistTable } = config.gateway
  if (jwtDenylistTable === null) return { denylist: NOTHING_DENIED, remarks: [] }
  if (databaseUrl === null) return unchecked('no database is configured')
  try {
    const database = await openDatabase(databaseUrl, { ...config.gateway, timeoutMs: READ_TIMEOUT_MS })
    let revocations: Revocations | null = null
    try {
      revocations = await openRevocations({ config, query: database.query, onRead() {}, emit })
      return { denylist: revocations.list, remarks: [] }
    } finally {
      revocations?.close()
      await database.close()
    }
  } catch (error) {
    return unchecked(
      error instanceof BootError ? error.findings.map(({ message }) => message).join(' ') : printFailure(error),
    )
  }
}

function unchecked(reason: string): ReadDenylist {
  return { denylist: NOTHING_DENIED, remarks: [`note     jwt_denylist_table was not checked: ${reason}`] }
}
