/** Keys in a file of the operator's: read at the start, and again when the gateway is asked to. */
import { readFile, stat } from 'node:fs/promises'
import { parseKeyFile } from './key-set.ts'
import { type KeySource, type LookedAgain, succeed } from './key-source.ts'
import { KeyError, type SigningKey } from './signing-key.ts'

const FILE_BYTES_MAX = 1_048_576

export class KeyFile implements KeySource {
  readonly #path: string
  #keys: readonly SigningKey[]

  private constructor(path: string, keys: readonly SigningKey[]) {
    this.#path = path
    this.#keys = keys
  }

  /** Rejects with `KeyError`. */
  static async open(path: string): Promise<KeyFile> {
    return new KeyFile(path, await readKeyFile(path))
  }

  current(): readonly SigningKey[] {
    return this.#keys
  }

  async lookAgain(): Promise<LookedAgain> {
    return 'fetched'
  }

  retryAfterSeconds(): number {
    return 1
  }

  /** Rejects with `KeyError`; the keys of before stay then. */
  async reload(): Promise<void> {
    this.#keys = succeed(this.#keys, await readKeyFile(this.#path))
  }
}

/** Rejects with `KeyError`. */
export async function readKeyFile(path: string): Promise<readonly SigningKey[]> {
  try {
    const { size } = await stat(path)
    if (size > FILE_BYTES_MAX) throw new KeyError(`it has ${size} bytes; at most ${FILE_BYTES_MAX} are read`)
    return parseKeyFile(await readFile(path, 'utf8'))
  } catch (error) {
    throw new KeyError(`${path}: ${(error as Error).message}`)
  }
}
