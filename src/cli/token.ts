/** `svc token`: prints a token for development, which the gateway of the same configuration accepts. */
import { loadConfig } from '../config/load.ts'
import { mintToken } from '../identity/mint.ts'
import { UsageError } from './failure.ts'
import type { World } from './world.ts'

export interface TokenCommand {
  readonly file: string | undefined
  readonly tenant?: string
  readonly user?: string
  readonly role?: string
  readonly scope: readonly string[]
  readonly agent?: string
  /** Seconds. */
  readonly expires: number
}

export async function token(command: TokenCommand, world: World): Promise<void> {
  const { jwtSecret, gateway } = loadConfig({ ...world, file: command.file, purpose: 'token' }).config
  if (!jwtSecret)
    throw new UsageError('JWT_SECRET is not set: set it to the secret that the gateway verifies tokens with')
  const request = {
    tenantId: command.tenant,
    userId: command.user,
    role: command.role,
    scopes: command.scope,
    agentId: command.agent,
    issuer: gateway.jwtIssuer,
    audience: gateway.jwtAudience,
    expiresInSeconds: command.expires,
  }
  world.out(await mintToken(jwtSecret, request, Date.now()))
}
