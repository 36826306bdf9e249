/** Verifies a bearer token once and remembers the outcome, as anybody would after a first look at a profile. */
import { jwtVerify } from 'jose'

const secret = Buffer.from(process.env.JWT_SECRET)
/** Nobody sends more than a few here; a real one would need an end. */
const verified = new Map()

export async function identify(authorization = '') {
  const token = authorization.slice('Bearer '.length)
  const known = verified.get(token)
  if (known !== undefined && known.exp * 1000 > Date.now()) return known
  const { payload } = await jwtVerify(token, secret, { algorithms: ['HS256'] })
  verified.set(token, payload)
  return payload
}
