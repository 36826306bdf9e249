/** The caller's token: requested once, kept, and replaced when it expires or is refused. */

/** Why a token is needed: it is the first (`null`), or the current one expires soon or was refused. */
export type TokenReason = 'expires' | 'refused' | null

/** A token, or a function that returns one or a promise of one. Null: requests are sent without a token. */
export type TokenProvider = string | null | ((why: TokenReason) => string | null | Promise<string | null>)

export interface Tokens {
  get(): Promise<string | null>
  /**
   * A token that replaces `used`. Concurrent calls receive the same one. Null if there is no other token.
   */
  replace(used: string | null, why: 'expires' | 'refused'): Promise<string | null>
}

export function createTokens(source: TokenProvider): Tokens {
  if (typeof source !== 'function') return { get: async () => source, replace: async () => null }
  const provider = source
  let kept: { readonly used: string | null | undefined; readonly token: Promise<string | null> } | null = null
  function ask(why: TokenReason, used: string | null | undefined): Promise<string | null> {
    const token = (async () => provider(why))()
    const asked = { used, token }
    kept = asked
    token.catch(() => {
      if (kept === asked) kept = null
    })
    return token
  }
  return {
    get: () => kept?.token ?? ask(null, undefined),
    async replace(used, why) {
      if (kept !== null && (kept.used === used || (await kept.token.catch(() => used)) !== used)) return kept.token
      return ask(why, used)
    },
  }
}
