/** Parses the address of an option: `--bind HOST:PORT`. */
import type { Bind } from '../config/config.ts'
import { bind as bindKind } from '../config/kinds.ts'
import { UsageError } from './failure.ts'

export function parseBind(text: string): Bind {
  try {
    return bindKind.parse(text, '/')
  } catch {
    throw new UsageError(`--bind ${text}: expected ${bindKind.expected}`)
  }
}
