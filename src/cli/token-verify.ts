/** `svc token verify`: which checks a token passes, which one refuses it, and the session settings that it results in. */
import { loadConfig } from '../config/load.ts'
import { GatewayError } from '../errors.ts'
import { openProviders } from '../gateway/providers.ts'
import type { Verified } from '../identity/issuer.ts'
import { createTokenVerifier } from '../identity/jwt.ts'
import { settingsOf } from '../identity/settings.ts'
import { EXIT, type World } from './world.ts'

export interface VerifyCommand {
  readonly file: string | undefined
  readonly token: string
}

/** 0: accepted, 1: refused, 2: its provider cannot be reached. */
export async function verify({ file, token }: VerifyCommand, world: World): Promise<number> {
  const { config } = loadConfig({ ...world, file })
  const issuers = await openProviders(config, event => {
    if (event.kind !== 'identity' || !('error' in event.detail)) return
    world.error(`issuer "${event.detail.issuer}": ${event.event}: ${(event.detail.error as Error).message}`)
  })
  try {
    await issuers.fetched()
    const tokens = createTokenVerifier(config, issuers.all, () => Date.now())
    const verified = await tokens.explain(token.trim(), passed => world.out(`ok       ${printable(passed)}`))
    for (const line of accepted(verified)) world.out(line)
    if (config.gateway.jwtDenylistTable !== null) world.out('note     jwt_denylist_table is not asked by this command')
    return EXIT.ok
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    world.out(`refused  ${error.message}`)
    return error.code === 'UNAVAILABLE' ? EXIT.usage : EXIT.failed
  } finally {
    issuers.close()
  }
}

function accepted({ identity }: Verified): readonly string[] {
  const settings = settingsOf(identity).map(([name, value]) => `  ${name} = ${JSON.stringify(value)}`)
  return ['accepted, with the session settings', ...settings]
}

/** A token is not ours: nothing in it reaches the terminal as a control character. */
function printable(text: string): string {
  return text.replace(/\p{Cc}/gu, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
