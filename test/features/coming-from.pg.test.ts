/**
 * docs/guides/coming-from-*.md: the statements of the pages apart from requests, which documents.pg.test.ts
 * executes. Settings exist, SQL has the described effect, and supported and unsupported syntax is as the
 * pages say.
 */
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { SETTINGS } from '../../src/config/settings.ts'
import { STORED_SETTING_NAMES } from '../../src/config/stored-settings.ts'
import { SAMPLE_TENANTS } from '../../src/demo/sample.ts'
import { operatorNamed } from '../../src/rest/parameters/operators.ts'
import { openSession } from '../support/catalog.ts'
import { databaseFixture, fixture, gatewayFixture } from '../support/fixtures.ts'
import { SECRET, testGateway } from '../support/gateway.ts'
import { blocksOf, fileNamed } from '../support/page.ts'
import { rowsBelow } from '../support/page-tables.ts'
import { sampleDatabase } from '../support/sample.ts'
import { uniqueName } from '../support/server.ts'
import { openSocket } from '../support/socket.ts'
import { read } from '../tidy/tree.ts'

const PAGES = ['postgrest', 'hasura', 'supabase'].map(
  name => [name, read(`docs/guides/coming-from-${name}.md`)] as const,
)
const [POSTGREST = '', HASURA = '', SUPABASE = ''] = PAGES.map(([, page]) => page)
const [TENANT] = SAMPLE_TENANTS
const CLERK = { tenantId: TENANT?.id, userId: TENANT?.userId, role: 'clerk' }

const database = databaseFixture(sampleDatabase)
const admin = fixture(() => openSession(database.adminUrl))
const gateway = gatewayFixture(database)

/** Runs the page's statements with roles of this test, because roles belong to the whole server. */
async function runStatements(page: string, roles: Readonly<Record<string, string>>): Promise<void> {
  for (const { text } of blocksOf(page).filter(({ language }) => language === 'sql')) {
    await admin.run(
      Object.entries(roles).reduce(
        (sql, [name, own]) => sql.replace(new RegExp(`\\b(to|role|grant) ${name}\\b`, 'g'), `$1 ${own}`),
        text,
      ),
    )
  }
}

test.each(PAGES)('%s shows an equivalent for most requests of the other gateway', (_, page) => {
  const requests = [...page.matchAll(/`(?:GET|POST|PATCH|DELETE) \/api\//g)]
  expect(requests.length).toBeGreaterThan(15)
})

test('the settings mentioned exist', () => {
  const ours = SETTINGS.flatMap(({ key, environment }) => [key?.split('.').at(-1), environment])
  // Settings of PostgREST that its function `pre_config` can make.
  const known = [...ours, ...STORED_SETTING_NAMES.map(name => name.replace(/^pgrst\./, ''))]
  const [, ...named] = rowsBelow(POSTGREST, '### Configuration').map(([, ours = '']) => ours)
  const words = named.flatMap(cell => [...cell.matchAll(/`([a-z]+_[a-z_]+|[A-Z]+_[A-Z_]+)`/g)].map(([, word]) => word))
  expect(words.length).toBeGreaterThan(6)
  const elsewhere = PAGES.flatMap(([, page]) =>
    [...page.matchAll(/`(require_\w+|max_\w+|\w+_path|prepared_statements|jwt_\w+|JWT_\w+)(?: = \w+)?`/g)].map(
      ([, word]) => word,
    ),
  )
  expect(elsewhere.length).toBeGreaterThan(5)
  expect([...words, ...elsewhere].filter(word => !known.includes(word))).toEqual([])
})

describe('PostgREST', () => {
  test('operators that the page lists as unknown are unknown', () => {
    const [, list = ''] = /you switch, replace (.*?) and similar operators/s.exec(POSTGREST) ?? []
    const names = [...list.matchAll(/`([\w()]+)`/g)].map(([, name = '']) => name)
    expect(names.length).toBeGreaterThan(10)
    expect(names.filter(name => operatorNamed(name) !== undefined)).toEqual([])
  })

  test('an unknown operator is part of the value, and an unknown parameter is a column', async () => {
    const ask = async (path: string) => (await gateway.get(path, { as: CLERK })).status
    expect((await gateway.get('/api/orders?notes=is.null', { as: CLERK })).json.count).toBe(0)
    const { status, json } = await gateway.get('/api/orders?approved_by=is.null', { as: CLERK })
    expect([status, json.error.hint]).toEqual([400, expect.stringContaining('write =is_null')])
    expect(await ask('/api/orders?order=total.desc')).toBe(400)
    expect(await ask('/api/tags?on_conflict=name')).toBe(400)
    expect((await gateway.get('/api/orders/5', { as: CLERK, method: 'PUT' })).status).toBe(405)
  })

  test('policies for a role apply to its members, and others compare the role of the token', async () => {
    const role = uniqueName('web_user')
    await admin.run(`create role ${role}`)
    await runStatements(POSTGREST, { web_user: role, gateway: 'app' })
    try {
      await admin.run(`create table notices (id int primary key); insert into notices values (1);
        grant select on notices to ${role};
        alter table notices enable row level security; create policy open on notices to ${role} using (true)`)
      await gateway.gateway.reload()
      expect((await gateway.get('/api/notices', { as: CLERK })).json.data).toEqual([{ id: 1 }])
      const change = async (as: string) =>
        (
          await gateway.get('/api/tags/1', {
            as: { ...CLERK, role: as },
            method: 'PATCH',
            headers: { 'Content-Type': 'application/json' },
            body: '{"name": "edited"}',
          })
        ).status
      expect([await change('clerk'), await change('editor')]).toEqual([404, 200])
    } finally {
      await admin.run(
        `drop table notices; drop policy editors_change on tags; drop owned by ${role}; drop role ${role}`,
      )
    }
  })
})

test('Hasura: permissions work as access policies', async () => {
  // The first policy creates a role that already exists.
  await admin.run('drop policy own_tenant on tags')
  await runStatements(HASURA, {})
  const tags = await gateway.get('/api/tags?select=tenant_id', { as: CLERK })
  expect(new Set(tags.json.data.map((row: { tenant_id: string }) => row.tenant_id))).toEqual(new Set([TENANT?.id]))
  const invoices = async (userId: string | undefined) =>
    (await gateway.get('/api/invoices/aggregate?fn=count', { as: { ...CLERK, userId } })).json.data.count
  const [[mine]] = (await admin.query(
    'select count(*) from invoices i join orders o on o.id = i.order_id where o.created_by = $1 and i.tenant_id = $2',
    [TENANT?.userId ?? '', TENANT?.id ?? ''],
  )) as [[string]]
  expect(Number(mine)).toBeGreaterThan(0)
  expect(await invoices(TENANT?.userId)).toBe(Number(mine))
  expect(await invoices('00000000-0000-4000-8000-000000000000')).toBe(0)

  const claims = { tenant_id: TENANT?.id, 'https://hasura.io/jwt/claims': { 'x-hasura-segment': 'wholesale' } }
  const token = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(SECRET))
  const changed = await fetch(`${gateway.url}/api/customers?credit_limit=gte.0&returning=segment`, {
    method: 'PATCH',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'X-Max-Affected': '100000' },
    body: '{"phone": "1"}',
  })
  const { data } = (await changed.json()) as { data: { segment: string }[] }
  expect(new Set(data.map(({ segment }) => segment))).toEqual(new Set(['wholesale']))
})

describe('Supabase', () => {
  test('its tokens are accepted, and policies with auth.uid() apply', async () => {
    const role = uniqueName('authenticated')
    try {
      await runStatements(SUPABASE, { authenticated: role, gateway: 'app' })
      await admin.run(`create table notes (id int primary key, author uuid not null); grant select on notes to ${role};
        insert into notes values (1, '${TENANT?.userId}'), (2, gen_random_uuid());
        alter table notes enable row level security, force row level security;
        create policy own on notes for select to ${role}
          using ((select auth.uid()) = author and (select auth.jwt() ->> 'aal') = 'aal1')`)
      const own = await testGateway(database.url, { toml: fileNamed(SUPABASE, 'svc.toml').replace('[gateway]\n', '') })
      const claims = {
        ...{
          iss: 'https://project.example.com/auth/v1',
          aud: 'authenticated',
          sub: TENANT?.userId,
          role: 'authenticated',
        },
        ...{
          exp: Math.floor(Date.now() / 1000) + 600,
          iat: 1,
          email: 'a@example.com',
          phone: '',
          is_anonymous: false,
          aal: 'aal1',
        },
        ...{
          app_metadata: { provider: 'email', providers: ['email'] },
          user_metadata: {},
          amr: [{ method: 'password', timestamp: 1 }],
        },
      }
      const ask = async (of: Readonly<Record<string, unknown>>) => {
        const token = await new SignJWT(of)
          .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: 'x' })
          .sign(Buffer.from(SECRET))
        const response = await fetch(`${own.url}/api/notes?select=id`, {
          headers: { Authorization: `Bearer ${token}` },
        })
        return [response.status, ((await response.json()) as { data: unknown }).data]
      }
      expect(await ask(claims)).toEqual([200, [{ id: 1 }]])
      expect(await ask({ ...claims, aud: 'other' })).toEqual([401, undefined])
      await own.close()
    } finally {
      await admin.run(
        `drop table if exists notes; drop schema if exists auth cascade; drop owned by ${role}; drop role ${role}`,
      )
    }
  })
})

test.each(
  PAGES.flatMap(([name, page]) =>
    blocksOf(page)
      .filter(({ language, text }) => language === 'json' && text.includes('"type"'))
      .map(({ text }) => ({ name, text })),
  ),
)('coming from $name, a message: $text', async ({ text }) => {
  const message = JSON.parse(text)
  const socket = await openSocket(gateway.url, { token: await gateway.token(CLERK) })
  socket.say(message)
  expect(await socket.nextOf('subscribed')).toMatchObject({ id: message.id })
  if (message.type === 'live_query') expect((await socket.nextOf('notification')).count).toBeGreaterThan(0)
  await socket.close()
})
