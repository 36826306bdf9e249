/**
 * Authentication by salted MD5 (PostgreSQL manual, 54.2.1, AuthenticationMD5Password). Kept for old servers;
 * off by default.
 */
import { createHash } from 'node:crypto'
import { writePassword } from '../protocol/frontend.ts'
import { type Mechanism, oneAnswer } from './mechanism.ts'

export function createMd5(user: string, password: string): Mechanism {
  return oneAnswer('md5', (challenge, writer) => {
    if (challenge.method !== 'md5') return false
    writePassword(writer, md5Response(user, password, challenge.salt))
    return true
  })
}

/** `md5` + md5(md5(password + user) + salt), in hexadecimal. */
export function md5Response(user: string, password: string, salt: Buffer): string {
  const inner = createHash('md5').update(password, 'utf8').update(user, 'utf8').digest('hex')
  return `md5${createHash('md5').update(inner, 'latin1').update(salt).digest('hex')}`
}
