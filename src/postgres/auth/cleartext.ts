/** Authentication by cleartext password. The policy allows it over TLS only, unless configured explicitly. */
import { writePassword } from '../protocol/frontend.ts'
import { type Mechanism, oneAnswer } from './mechanism.ts'

export function createCleartext(password: string): Mechanism {
  return oneAnswer('password', (challenge, writer) => {
    if (challenge.method !== 'cleartext') return false
    writePassword(writer, password)
    return true
  })
}
