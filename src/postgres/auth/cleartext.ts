/** Authentication by the bare password. The policy allows it over TLS only, unless somebody insisted. */
import { writePassword } from '../protocol/frontend.ts'
import type { Mechanism } from './mechanism.ts'

export function createCleartext(password: string): Mechanism {
  return {
    name: 'password',
    finished: true,
    respond(_challenge, writer) {
      writePassword(writer, password)
    },
  }
}
