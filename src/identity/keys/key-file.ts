/** Keys in a file of the operator: read at startup, and again on reload. */
import { readFile, stat } from 'node:fs/promises'
import { parseKeyFile } from './key-set.ts'
import { type KeySource, type LookedAgain, succeed } from './key-source.ts'
import { KeyError, type SigningKey } from './signing-key.ts'

const FILE_BYTES_MAX = 1_048_576

/** The keys of one file. */
export class KeyFile implements KeySource {
  readonly #path: string
  #keys: readonly SigningKey[]

  private constructor(path: string, keys: readonly SigningKey[]) {
    this.#path = path
    this.#keys = keys
  }

  /** Reads the file. Rejects with `KeyError`. */
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

  /** Reads the file again. Rejects with `KeyError`; the previous keys stay in use then. */
  async reload(): Promise<void> {
    this.#keys = succeed(this.#keys, await readKeyFile(this.#path))
  }
}

/** Reads and parses a key file. Rejects with `KeyError`. */
export async function readKeyFile(path: string): Promise<readonly SigningKey[]> {
  try {
    const { size } = await stat(path)
    if (size > FILE_BYTES_MAX) throw new KeyError(`it has ${size} bytes; at most ${FILE_BYTES_MAX} are read`)
    return parseKeyFile(await readFile(path, 'utf8'))
  } catch (error) {
    throw new KeyError(`${path}: ${(error as Error).message}`)
  }
}
