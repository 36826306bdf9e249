/** Get by id with tokens of each kind of signature, and the first verification of each kind. */
import { createSecretKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { SignJWT } from 'jose/jwt/sign'
import type { Benchmark, Check, Lane } from './harness/benchmark.ts'
import { TENANT } from './harness/database.ts'
import { httpLane, throughput } from './harness/lanes.ts'
import { orderIds } from './harness/orders.ts'
import { fetchOk, SECRET, type World } from './harness/world.ts'

const HS256 = 'HS256'
const PUBLIC = ['RS256', 'ES256'] as const
const ALGORITHMS = [HS256, ...PUBLIC] as const
type Algorithm = (typeof ALGORITHMS)[number]

const SEEN = 'one connection, the same token'
const newTokens = (alg: Algorithm) => `one connection, each time a new ${alg} token`

/** Requests of a measurement that shows a new token each time. */
const NEW_TOKENS = 300
const TOKEN_SECONDS = 24 * 3600

export const tokens: Benchmark = {
  name: 'tokens',
  title: 'Get by id with tokens of identity providers',
  tools: ['wrk'],
  checks: [
    ...PUBLIC.map(alg => throughput(alg, [HS256], 0.97)),
    ...ALGORITHMS.map(
      (alg): Check => ({
        ...{ kind: 'ratio', unit: 'ms', lane: newTokens(alg), references: [SEEN], better: 'lower', target: null },
      }),
    ),
  ],
  async prepare(world) {
    const ids = await orderIds(world)
    const signers = await makeSigners(world)
    const settings = PUBLIC.flatMap(alg => [
      '[[gateway.issuers]]',
      `issuer = "${issuerOf(alg)}"`,
      `public_key_path = ${JSON.stringify(keyFile(world, alg))}`,
    ])
    // One gateway, so that every kind of token meets the same warm code.
    const gateway = await world.startGateway({ settings })
    const url = `${gateway.url}/api/orders/`
    const lanes: Lane[] = []
    for (const alg of ALGORITHMS) {
      const headers = bearer(await signers[alg]())
      await fetchOk(url + ids.first, headers)
      lanes.push(await httpLane(world, alg, url, { ids, headers }))
    }
    const same = await signers[HS256]()
    lanes.push(sequentialLane(SEEN, url + ids.first, async () => same))
    for (const alg of ALGORITHMS) lanes.push(sequentialLane(newTokens(alg), url + ids.first, signers[alg]))
    return lanes
  },
}

const issuerOf = (alg: Algorithm): string => `bench-${alg}`
const keyFile = (world: World, alg: Algorithm): string => join(world.folder, `${alg}.pem`)
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

type Sign = () => Promise<string>

/** Of each algorithm, what makes a new token with the same claims but for `jti`. */
async function makeSigners(world: World): Promise<Readonly<Record<Algorithm, Sign>>> {
  const pairs = {
    RS256: generateKeyPairSync('rsa', { modulusLength: 2_048 }),
    ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  }
  for (const alg of PUBLIC) {
    await writeFile(keyFile(world, alg), pairs[alg].publicKey.export({ type: 'spki', format: 'pem' }))
  }
  return {
    HS256: signer(HS256, createSecretKey(Buffer.from(SECRET))),
    RS256: signer('RS256', pairs.RS256.privateKey),
    ES256: signer('ES256', pairs.ES256.privateKey),
  }
}

function signer(alg: Algorithm, key: KeyObject): Sign {
  let made = 0
  return () => {
    made += 1
    const claims = { tenant_id: TENANT.id, user_id: TENANT.userId, role: 'clerk', scope: 'orders:read' }
    return new SignJWT({ ...claims, jti: String(made) })
      .setProtectedHeader({ alg, typ: 'JWT' })
      .setIssuer(issuerOf(alg))
      .setExpirationTime(Math.floor(Date.now() / 1_000) + TOKEN_SECONDS)
      .sign(key)
  }
}

/** Asks, waits and asks again on one connection; the tokens are made before the clock runs. */
function sequentialLane(name: string, url: string, sign: Sign): Lane {
  return {
    name,
    async measure() {
      const all: string[] = []
      while (all.length < NEW_TOKENS) all.push(await sign())
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      try {
        await ask(url, agent, all[0] ?? '')
        const started = performance.now()
        for (const token of all.slice(1)) await ask(url, agent, token)
        return { ms: (performance.now() - started) / (all.length - 1) }
      } finally {
        agent.destroy()
      }
    },
  }
}

function ask(url: string, agent: Agent, token: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const asking = request(url, { agent, headers: bearer(token) }, response => {
      response.resume()
      response.once('error', reject)
      response.once('end', () => {
        if (response.statusCode === 200) resolve()
        else reject(new Error(`${url} answered ${response.statusCode}`))
      })
    })
    asking.once('error', reject)
    asking.end()
  })
}
