/** The configured identity providers (docs/guides/authentication.md), opened. */

import type { Clock } from '../clock.ts'
import type { IssuerConfig } from '../config/config.ts'
import { HMAC_ALGORITHMS } from '../config/config.ts'
import { type Emit, unusableFile } from '../events.ts'
import { createIssuer, type Issuer } from './issuer.ts'
import { KeyFile } from './keys/key-file.ts'
import { fixedKeys, type KeySource } from './keys/key-source.ts'
import type { FetchedKeys } from './keys/provider.ts'
import { type KeysEvent, type KeysStats, RemoteKeys } from './keys/remote-keys.ts'
import { KeyError, keyOfSecret } from './keys/signing-key.ts'

/** All issuers of a gateway. */
export interface Issuers {
  readonly all: readonly Issuer[]
  /** Reads key files again, and fetches published keys again. */
  reload(): Promise<void>
  /** Resolves when the fetches in progress have ended, successfully or not. */
  fetched(): Promise<void>
  /** The state of the issuers whose keys are fetched. */
  stats(): readonly IssuerStats[]
  close(): void
}

/** The state of one issuer's keys. */
export interface IssuerStats extends KeysStats {
  readonly issuer: string
}

/** The inputs for opening the issuers. */
export interface IssuersParts {
  readonly issuers: readonly IssuerConfig[]
  readonly requireExp: boolean
  /** Rejects with the reason. */
  readonly fetchKeys: (issuer: IssuerConfig) => Promise<FetchedKeys>
  readonly clock: Clock
  readonly random: () => number
  readonly emit: Emit
}

/** Opens all issuers. Waits for files but not for providers. Rejects with `KeyError`. */
export async function openIssuers(parts: IssuersParts): Promise<Issuers> {
  const files: { readonly file: KeyFile; readonly issuer: string }[] = []
  const remote: { readonly keys: RemoteKeys; readonly issuer: string }[] = []

  async function sourceOf(config: IssuerConfig): Promise<KeySource> {
    const { issuer } = config
    if (config.secret !== null) return fixedKeys([keyOfSecret(config.secret, null, HMAC_ALGORITHMS)])
    if (config.publicKeyPath !== null) {
      const file = await KeyFile.open(config.publicKeyPath).catch(error => {
        throw error instanceof KeyError ? new KeyError(`issuer "${issuer}": ${error.message}`) : error
      })
      files.push({ file, issuer })
      return file
    }
    const keys = new RemoteKeys({
      ...{ clock: parts.clock, random: parts.random },
      fetch: () => parts.fetchKeys(config),
      onEvent: event => emitKeysEvent(event, issuer, parts.emit),
    })
    remote.push({ keys, issuer })
    return keys
  }

  function close(): void {
    for (const { keys } of remote) keys.close()
  }

  const all: Issuer[] = []
  try {
    for (const config of parts.issuers) {
      const rules = {
        ...{ requireExp: parts.requireExp, leewaySeconds: config.leewaySeconds },
        ...{ issuer: config.issuer, audience: config.audience, required: config.requiredClaims, mapping: config },
      }
      all.push(createIssuer({ config, keys: await sourceOf(config), rules }))
    }
  } catch (error) {
    close()
    throw error
  }

  return {
    all,
    async reload() {
      for (const { keys } of remote) void keys.fetch()
      for (const { file, issuer } of files) {
        await file.reload().catch(error => {
          const message = `issuer "${issuer}": ${(error as Error).message}`
          parts.emit(unusableFile(message, 'the keys read before stay in effect'))
        })
      }
    },
    async fetched() {
      await Promise.all(remote.map(({ keys }) => keys.firstFetch))
    },
    stats: () => remote.map(({ keys, issuer }) => ({ issuer, ...keys.stats() })),
    close,
  }
}

function emitKeysEvent(event: KeysEvent, issuer: string, emit: Emit): void {
  switch (event.kind) {
    case 'fetched': {
      const { keys, unusable } = event
      const detail = unusable.length === 0 ? {} : { unusable: unusable.slice(0, UNUSABLE_SHOWN_MAX) }
      emit({ kind: 'identity', event: 'keys fetched', detail: { issuer, keys, ...detail } })
      return
    }
    case 'failed': {
      const { error, servedForMs } = event
      const name =
        servedForMs > 0 ? 'keys could not be fetched again; the old keys stay in use' : 'keys could not be fetched'
      const served = servedForMs > 0 ? { servedForS: servedForMs / 1_000 } : {}
      emit({ kind: 'identity', event: name, detail: { issuer, error, ...served } })
      return
    }
    case 'dropped': {
      const error = new Error('the provider has not answered for too long')
      emit({ kind: 'identity', event: 'keys are too old and no longer accepted', detail: { issuer, error } })
    }
  }
}

const UNUSABLE_SHOWN_MAX = 5
