/** The caller's token: asked for once, kept, and replaced when it expires or is refused. */

/** Why a token is needed: the first time (`null`), because it expires soon, or because it was refused. */
export type TokenReason = 'expires' | 'refused' | null

/** A token, or a function that returns one, possibly after a while. Null: requests without a token. */
export type TokenProvider = string | null | ((why: TokenReason) => string | null | Promise<string | null>)

export interface Tokens {
  get(): Promise<string | null>
  /**
   * A token instead of `used`. Callers that ask at the same time get the same one. Null if there is no
   * other.
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
