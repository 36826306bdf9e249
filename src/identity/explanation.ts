/**
 * Explains a token step by step: each check that it passes, the one that refuses it, and the session settings
 * (docs/guides/authentication.md#check-a-token).
 */
import { GatewayError } from '../errors.ts'
import type { TokenVerifier } from './jwt.ts'
import { settingsOf } from './settings.ts'

export interface Explanation {
  /** `unavailable`: the keys of its issuer could not be fetched. */
  readonly outcome: 'accepted' | 'refused' | 'unavailable'
  readonly lines: readonly string[]
}

/** `remarks`: lines between the checks and the result. Never rejects for a token that is refused. */
export async function explainToken(
  tokens: Pick<TokenVerifier, 'explain'>,
  compact: string,
  remarks: readonly string[] = [],
): Promise<Explanation> {
  const checks: string[] = []
  const explained = (outcome: Explanation['outcome'], lines: readonly string[]): Explanation => ({
    outcome,
    lines: [...checks, ...remarks, ...lines].map(printable),
  })
  try {
    const { identity } = await tokens.explain(compact, passed => checks.push(`ok       ${passed}`))
    const settings = settingsOf(identity).map(([name, value]) => `  ${name} = ${JSON.stringify(value)}`)
    return explained('accepted', ['accepted, with the session settings', ...settings])
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return explained(error.code === 'UNAVAILABLE' ? 'unavailable' : 'refused', [`refused  ${error.message}`])
  }
}

/** Escapes control characters of a token for terminals, where U+009B begins a command as ESC does. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}]/gu, character => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}
