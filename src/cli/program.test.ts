import { EventEmitter } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { secretIdentities } from '../../test/support/verifier.ts'
import { run } from './program.ts'
import type { SignalSource } from './signals.ts'

const SECRET = 'a secret of 32 bytes, or of more'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-cli-'))
})

afterEach(() => rmSync(folder, { recursive: true }))

interface Said {
  readonly code: number
  readonly out: string
  readonly error: string
}

async function svc(
  argv: readonly string[],
  environment: Record<string, string> = {},
  input: string | Uint8Array = '',
): Promise<Said> {
  const out: string[] = []
  const error: string[] = []
  const code = await run(argv, {
    environment,
    workingDirectory: folder,
    input: async () => Buffer.from(input),
    stdio: () => ({ input: new PassThrough(), output: new PassThrough() }),
    out: line => out.push(line),
    error: line => error.push(line),
    ...{ hasColors: false, terminal: null },
    signals: new EventEmitter() as unknown as SignalSource,
  })
  return { code, out: out.join('\n'), error: error.join('\n') }
}

describe('help output', () => {
  test('contains every command, examples and exit codes, on standard output', async () => {
    const { code, out, error } = await svc(['--help'])
    expect([code, error]).toEqual([0, ''])
    for (const text of ['serve', 'demo', 'token', 'check', 'Examples:', 'svc demo\n', '\n\nExit codes:'])
      expect(out).toContain(text)
  })

  test.each(['serve', 'demo', 'token', 'check', 'mcp', 'parse', 'transpile', 'explain', 'format', 'types'])(
    'of %s, with examples',
    async command => {
      const { code, out } = await svc([command, '--help'])
      expect(code).toBe(0)
      expect(out).toContain(`Usage: svc ${command}`)
      expect(out).toMatch(new RegExp(`Examples:\\n.*svc ${command}`))
      expect(await svc(['help', command])).toEqual({ code: 0, out, error: '' })
    },
  )

  test('is an error without a command', async () => {
    const { code, out, error } = await svc([])
    expect([code, out]).toEqual([2, ''])
    expect(error).toContain('Usage: svc')
  })
})

test('the option --version prints only the version', async () => {
  expect(await svc(['--version'])).toEqual({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+$/), error: '' })
})

describe('unknown input: exit code 2 and a suggestion', () => {
  test.each([
    [['srve'], "error: unknown command 'srve'\n(Did you mean serve?)"],
    [['chekc'], '(Did you mean check?)'],
    [['token', '--tennant', '1'], '(Did you mean --tenant?)'],
    [['demo', '--port', 'http'], 'Expected a port from 1 to 65535.'],
    [['demo', '--port', '0'], 'Expected a port from 1 to 65535.'],
    [['token', '--expires', 'soon'], 'Expected a number and a unit, such as 30s, 15m, 1h or 7d, at most ten years.'],
    [['serve', 'now'], 'too many arguments'],
  ])('%j', async (argv, message) => {
    const { code, out, error } = await svc(argv)
    expect([code, out]).toEqual([2, ''])
    expect(error).toContain(message)
  })
})

describe('token', () => {
  const verify = secretIdentities(SECRET, { requireExp: true, jwtIssuer: null, jwtAudience: null }, Date.now)

  test('only the token is printed to standard output, and the gateway accepts it', async () => {
    const argv = [
      'token',
      '--tenant',
      '42',
      '--user',
      'ann',
      '--role',
      'clerk',
      '--scope',
      'a:read',
      '--scope',
      'b',
      '--agent',
      'x',
      '--expires',
      '15m',
    ]
    const before = Math.floor(Date.now() / 1000)
    const { code, out, error } = await svc(argv, { JWT_SECRET: SECRET })
    const after = Math.ceil(Date.now() / 1000)
    expect([code, error]).toEqual([0, ''])
    const identity = await verify(out)
    expect(identity).toMatchObject({
      tenantId: '42',
      userId: 'ann',
      role: 'clerk',
      scopes: ['a:read', 'b'],
      agentId: 'x',
    })
    expect(identity.expiresAt).toBeGreaterThanOrEqual(before + 900)
    expect(identity.expiresAt).toBeLessThanOrEqual(after + 900)
  })

  test('is valid for an hour by default', async () => {
    const { out } = await svc(['token'], { JWT_SECRET: SECRET })
    const { expiresAt } = await verify(out)
    expect((expiresAt ?? 0) - Date.now() / 1000).toBeGreaterThan(3_590)
    expect((expiresAt ?? 0) - Date.now() / 1000).toBeLessThanOrEqual(3_600)
  })

  test('has the issuer and audience that the gateway requires', async () => {
    writeFileSync(join(folder, 'svc.toml'), '[gateway]\njwt_issuer = "me"\njwt_audience = "svc"')
    const { out } = await svc(['token'], { JWT_SECRET: SECRET })
    const strict = secretIdentities(SECRET, { requireExp: true, jwtIssuer: 'me', jwtAudience: 'svc' }, Date.now)
    expect((await strict(out)).claims).toContain('"iss":"me","aud":"svc"')
  })

  test('needs no database, so a variable of its URL can be unset', async () => {
    const name = 'NOT_SET'
    const unset = `\${${name}}`
    writeFileSync(
      join(folder, 'svc.toml'),
      `[gateway]\ndatabase_url = "${unset}"\npolicy_path = "gone.yaml"\njwt_issuer = "me"`,
    )
    const { code, out, error } = await svc(['token'], { JWT_SECRET: SECRET })
    expect([code, error]).toEqual([0, ''])
    expect((await verify(out)).claims).toContain('"iss":"me"')
    writeFileSync(join(folder, 'svc.toml'), `[gateway]\njwt_issuer = "${unset}"`)
    expect(await svc(['token'], { JWT_SECRET: SECRET })).toMatchObject({
      code: 1,
      error: expect.stringContaining('NOT_SET is not set'),
    })
  })

  test('requires the secret', async () => {
    const message = 'JWT_SECRET is not set: set it to the secret that the gateway verifies tokens with'
    expect(await svc(['token'])).toEqual({ code: 2, out: '', error: message })
    expect(await svc(['token'], { JWT_SECRET: '' })).toEqual({ code: 2, out: '', error: message })
  })
})

describe('check, without a database', () => {
  test('reports all problems of the configuration together', async () => {
    writeFileSync(join(folder, 'svc.toml'), '[gateway]\nmax_fliters = 1\nstrict = 1\n')
    expect(await svc(['check'])).toEqual({
      code: 1,
      out: '',
      error:
        'svc.toml:2: gateway.max_fliters: unknown key; did you mean gateway.max_filters?\n' +
        'svc.toml:3: gateway.strict: expected true or false, not 1',
    })
  })

  test('reports a short secret and a missing database', async () => {
    const { code, out, error } = await svc(['check'], { JWT_SECRET: 'short' })
    expect([code, error]).toEqual([1, ''])
    expect(out).toContain('error: JWT_SECRET has 5 bytes')
    expect(out).toContain('error: No database is configured.')
    expect(out).toContain('no configuration file: 2 errors, 0 warnings')
  })

  test('an invalid database URL is a finding without the password', async () => {
    const { code, out } = await svc(['check'], {
      JWT_SECRET: SECRET,
      DATABASE_URL: 'postgres://app:hunter2@localhost/x?sslmood=require',
    })
    expect(code).toBe(1)
    expect(out).toContain('error: The database cannot be reached: the database URL is invalid:')
    expect(out).toContain('sslmode')
    expect(out).not.toContain('hunter2')
    expect(out).toContain('no configuration file: 1 error, 0 warnings')
  })

  test('a valid database URL is printed with every default and without the password', async () => {
    const { out } = await svc(['check'], {
      JWT_SECRET: SECRET,
      DATABASE_URL: 'postgres://app:hunter2@127.0.0.1:1/x?sslmode=require&auth_mode=compat',
    })
    expect(out).toContain('database_url: app@127.0.0.1:1/x')
    expect(out).toContain('  TLS: sslmode=require, the certificate is not verified')
    expect(out).toContain('  authentication: SCRAM-SHA-256, md5, password over TLS; channel_binding=prefer')
    expect(out).not.toContain('hunter2')
  })

  test('a database that does not respond is a finding at once', async () => {
    const { code, out } = await svc(['check'], {
      JWT_SECRET: SECRET,
      DATABASE_URL: 'postgres://app:hunter2@127.0.0.1:1/x',
    })
    expect(code).toBe(1)
    expect(out).toMatch(/^error: The database cannot be checked: cannot connect to .*127\.0\.0\.1/)
    expect(out).not.toContain('hunter2')
  })

  test('--print shows the settings in force, without secrets', async () => {
    writeFileSync(join(folder, 'svc.toml'), '[gateway]\ndefault_limit = 7\nadmin_token = "hunter2"')
    const { out } = await svc(['check', '--print'], {
      JWT_SECRET: 'hunter2',
      DATABASE_URL: 'postgres://app:hunter2@[::1]:1/x',
    })
    expect(out).toContain('\ndefault_limit = 7\n')
    expect(out).toContain('database_url = "postgres://app:***@[::1]:1/x"')
    expect(out).not.toContain('hunter2')
  })
})

describe('check, with the query and function allow-lists', () => {
  test('reports all errors of both lists', async () => {
    writeFileSync(join(folder, 'svc.toml'), '[gateway]\nallow_list_path = "a.txt"\nrpc_allowlist_path = "f.txt"\n')
    writeFileSync(join(folder, 'a.txt'), 'GET /api/orders?status.ek\n# fine\nget orders where\n')
    writeFileSync(join(folder, 'f.txt'), 'no function\n')
    const { code, out } = await svc(['check'], { JWT_SECRET: SECRET })
    expect(code).toBe(1)
    expect(out).toMatch(/error: \S+f\.txt:1: .*\n\S+a\.txt:1: .*\n\S+a\.txt:3: .*\n {2}Correct the files/)
  })

  test('--record needs a file and is rejected together with --print', async () => {
    expect(await svc(['check', '--record'], { JWT_SECRET: SECRET })).toEqual({
      ...{ code: 2, out: '' },
      error: '--record needs a file to write to: svc check --record FILE, or set allow_list_path',
    })
    const both = await svc(['check', '--record', 'a.txt', '--print'], { JWT_SECRET: SECRET })
    expect([both.code, both.error]).toEqual([2, expect.stringContaining("cannot be used with option '--print'")])
  })
})

describe('serve refuses to start', () => {
  test('with an invalid address, or two addresses', async () => {
    expect(await svc(['serve', '--bind', 'here'], { JWT_SECRET: SECRET })).toMatchObject({
      code: 2,
      error: expect.stringMatching(/^--bind here: expected /),
    })
    expect((await svc(['serve', '--port', '70000'])).error).toContain('Expected a port from 1 to 65535.')
    expect((await svc(['serve', '--port', '9000', '--bind', '127.0.0.1:9000'])).code).toBe(2)
  })

  test('with a broken configuration', async () => {
    expect(await svc(['serve', '--config', 'gone.toml'])).toEqual({
      code: 1,
      out: '',
      error: expect.stringMatching(/^gone\.toml: cannot be read: ENOENT/),
    })
  })

  test('without a secret, in development mode on an open address, without a database', async () => {
    const database = { DATABASE_URL: 'postgres://app@127.0.0.1:1/x' }
    expect(await svc(['serve'], database)).toMatchObject({
      code: 1,
      error: expect.stringContaining('JWT_SECRET is not set'),
    })
    const open = { ...database, JWT_SECRET: SECRET, SVC_DEV_MODE: 'true', SVC_BIND: '0.0.0.0:0' }
    expect(await svc(['serve'], open)).toMatchObject({
      code: 1,
      error: expect.stringContaining('the bind address is 0.0.0.0'),
    })
    expect(await svc(['serve'], { JWT_SECRET: SECRET })).toMatchObject({
      code: 1,
      error: expect.stringContaining('DATABASE_URL'),
    })
  })
})

describe('the query language', () => {
  const TWO = "get users where id=1; -- gone\ncnt users where name = 'x'"

  test('parse prints the tree of each statement', async () => {
    const { code, out, error } = await svc(['parse'], {}, 'get users where id = $1')
    expect([code, error]).toEqual([0, ''])
    expect(JSON.parse(out)).toMatchObject({ kind: 'get', source: { table: { name: 'users' } } })
  })
  test('--json prints what the tools return, one line per statement', async () => {
    const { out } = await svc(['parse', '--json', '--parameterized'], {}, TWO)
    const [first, second] = out.split('\n').map(line => JSON.parse(line))
    expect(first).toMatchObject({
      ok: true,
      ast: { kind: 'get' },
      formatted: 'get users\nwhere id = 1',
      sql: 'SELECT * FROM users WHERE id = $1',
      parameters: [{ kind: 'literal', value: '1', type: 'integer' }],
    })
    expect(second).toMatchObject({ sql: 'SELECT COUNT(*) FROM users WHERE name = $1' })
  })
  test('transpile prints SQL that psql accepts', async () => {
    expect(await svc(['transpile', '-'], {}, TWO)).toEqual({
      code: 0,
      out: "SELECT * FROM users WHERE id = 1;\nSELECT COUNT(*) FROM users WHERE name = 'x';",
      error: '',
    })
    const { out } = await svc(['transpile', '--json'], {}, 'get users where id = :id')
    expect(JSON.parse(out)).toEqual({
      ok: true,
      sql: 'SELECT * FROM users WHERE id = $1',
      parameters: [{ kind: 'name', name: 'id' }],
    })
  })
  test('explain describes a statement part by part', async () => {
    const text =
      'get users u join posts p on p.user_id = u.id fields u.id, count(*) as n ' +
      'where u.active = true and p.views > 1 order by n desc limit 3; ' +
      'del posts where all'
    expect(await svc(['explain'], {}, text)).toEqual({
      code: 0,
      out: `\
action    read
table     users
columns   u.id, count(*) as n
joins     left posts as p on p.user_id = u.id
filters   u.active = true
          p.views > 1
ordering  n desc nulls first
limit     3
notes     The left join, which a bare join is too, keeps rows without a match in p, with null for its columns.
          The filters use columns of p, which are null in rows without a match.
          Groups by u.id: fields next to an aggregate are an implicit group by.

action    delete
table     posts
notes     Every row of posts is deleted (where all).`,
      error: '',
    })
    const { out } = await svc(['explain', '--json'], {}, 'count users')
    expect(JSON.parse(out)).toMatchObject({ ok: true, action: 'count', table: 'users' })
  })
  test('a syntax error is printed to standard error with its position', async () => {
    for (const command of ['parse', 'transpile', 'explain', 'format']) {
      const { code, out, error } = await svc([command], {}, 'get users\nwhere )')
      expect([code, out], command).toEqual([1, ''])
      expect(error).toMatch(/^<stdin>:2:7: /)
      expect(error).toContain('where )\n')
    }
    expect(await svc(['transpile'], {}, 'delete from users')).toMatchObject({
      code: 1,
      error: expect.stringMatching(/^<stdin>:1:8: .*\n {2}delete from users\n {9}\^\nleave out "from"$/),
    })
  })
  test('a statement that cannot become SQL is reported too', async () => {
    expect(await svc(['transpile'], {}, 'add users values 1 conflict update a = 1')).toMatchObject({ code: 1, out: '' })
  })
  test('format prints, checks and writes', async () => {
    const [good, bad] = ['good.svc', 'bad.svc']
    writeFileSync(join(folder, good), 'get users\nwhere id = 1\n')
    writeFileSync(join(folder, bad), 'get users where id=1 -- one')
    expect(await svc(['format', good, bad])).toMatchObject({
      code: 0,
      out: 'get users\nwhere id = 1\nget users\nwhere id = 1 -- one',
    })
    expect(await svc(['format', '--check', good])).toEqual({ code: 0, out: '', error: '' })
    expect(await svc(['format', '--check', good, bad])).toMatchObject({
      code: 1,
      error: 'bad.svc is not in canonical form; svc format --write rewrites it',
    })
    expect(await svc(['format', '--write', good, bad])).toEqual({ code: 0, out: '', error: '' })
    expect(readFileSync(join(folder, bad), 'utf8')).toBe('get users\nwhere id = 1 -- one\n')
    expect(await svc(['format', '--check', good, bad])).toEqual({ code: 0, out: '', error: '' })
    expect(await svc(['format', '--check', '--write', good])).toMatchObject({ code: 2 })
  })
  test('an empty file stays empty', async () => {
    writeFileSync(join(folder, 'empty.svc'), '')
    expect(await svc(['format', '--check', 'empty.svc'])).toEqual({ code: 0, out: '', error: '' })
    expect(await svc(['format', '--write', 'empty.svc'])).toEqual({ code: 0, out: '', error: '' })
    expect(readFileSync(join(folder, 'empty.svc'), 'utf8')).toBe('')
  })
  test('a file that is not UTF-8 is rejected and left unchanged', async () => {
    const latin = Buffer.from("get users where name = 'M\u00fcller'", 'latin1')
    writeFileSync(join(folder, 'latin.svc'), latin)
    const error = 'is not UTF-8; save it as UTF-8'
    expect(await svc(['format', '--write', 'latin.svc'])).toEqual({ code: 2, out: '', error: `latin.svc ${error}` })
    expect(readFileSync(join(folder, 'latin.svc'))).toEqual(latin)
    for (const command of ['parse', 'transpile', 'format']) {
      expect(await svc([command], {}, latin)).toEqual({ code: 2, out: '', error: `<stdin> ${error}` })
    }
    expect(await svc(['transpile'], {}, Buffer.from('\ufeffget users'))).toMatchObject({ out: 'SELECT * FROM users;' })
  })
  const SHOP = `
table users { id int8 primary_key, home int8 references cities (code), name text }
table cities { code int8 primary_key }
table posts { key int8 primary_key, writer int8 references users (id), editor int8
  foreign_key (editor) references users (id) }
table likes { user int8 references users (id), post int8 references posts (key), primary_key (user, post) }
table islands { id int8 }
table addresses { tenant int8, id int8, primary_key (tenant, id) }
table parcels { tenant int8, from_id int8, to_id int8
  foreign_key (tenant, from_id) references addresses (tenant, id)
  foreign_key (tenant, to_id) references addresses (tenant, id) }
`
  test('transpile prints the inferred join conditions to standard error', async () => {
    const text = 'count users;\nget users u join posts p nest many likes nest cities on true'
    const guessed = 'which is inferred from the names; write "on", or let svc transpile read the foreign keys'
    const both = [
      `the join of p is on p.user_id = u.id, ${guessed}: --schema FILE or --database`,
      `the nest of likes is on likes.user_id = u.id, ${guessed}: --schema FILE or --database`,
    ]
    const { code, out, error } = await svc(['transpile'], {}, text)
    expect(code).toBe(0)
    expect(out).toContain('LEFT JOIN posts AS p ON p.user_id = u.id')
    expect(error.split('\n')).toEqual([`<stdin>:2:13: note: ${both[0]}`, `<stdin>:2:26: note: ${both[1]}`])
    const json = await svc(['transpile', '--json'], {}, text)
    expect(json.error).toBe('')
    const [count, get] = json.out.split('\n').map(line => JSON.parse(line))
    expect(count).toEqual({ ok: true, sql: 'SELECT COUNT(*) FROM users', parameters: [] })
    expect(get.notes).toEqual(both)
    const parsed = (await svc(['parse', '--json'], {}, text)).out.split('\n').map(line => JSON.parse(line))
    expect(parsed.map(({ notes }) => notes)).toEqual([undefined, both])
  })
  test('transpile infers nothing if a condition is written or not needed', async () => {
    const text = 'get users u join posts p on p.writer = u.id cross join cities inner join lateral (get likes) l'
    expect(await svc(['transpile'], {}, text)).toMatchObject({ code: 0, error: '' })
  })
  test.each([
    ['get users join cities', 'SELECT * FROM users LEFT JOIN cities ON users.home = cities.code;'],
    ['get cities c join users u', 'SELECT * FROM cities AS c LEFT JOIN users AS u ON c.code = u.home;'],
    [
      'get users join cities nest cities as home',
      'SELECT *, (SELECT row_to_json(n.*) FROM (SELECT * FROM cities AS home WHERE home.code = users.home) AS n) ' +
        'AS home FROM users LEFT JOIN cities ON users.home = cities.code;',
    ],
    [
      'del users inner join cities where cities.code = 1',
      'DELETE FROM users USING cities WHERE users.home = cities.code AND cities.code = 1;',
    ],
    [
      'get users where exists (get likes join posts)',
      'SELECT * FROM users WHERE EXISTS (SELECT * FROM likes LEFT JOIN posts ON likes.post = posts.key);',
    ],
    [
      'get public.users join public.cities',
      'SELECT * FROM public.users LEFT JOIN public.cities ON users.home = cities.code;',
    ],
  ])('transpile --schema: %s', async (text, sql) => {
    writeFileSync(join(folder, 'shop.schema'), SHOP)
    expect(await svc(['transpile', '--schema', 'shop.schema'], {}, text)).toEqual({ code: 0, out: sql, error: '' })
  })
  test.each([
    [
      'get users join posts',
      '<stdin>:1:11: several foreign keys connect table "users" with table "posts"; ' +
        'write the one that the join uses: on users.id = posts.writer, or on users.id = posts.editor',
    ],
    [
      'get parcels join addresses',
      '<stdin>:1:13: several foreign keys connect table "parcels" with table "addresses"; ' +
        'write the one that the join uses: on parcels.tenant = addresses.tenant and parcels.from_id = addresses.id, ' +
        'or on parcels.tenant = addresses.tenant and parcels.to_id = addresses.id',
    ],
    [
      'get users join islands',
      '<stdin>:1:11: no foreign key connects table "users" with table "islands"; ' +
        'write the condition of the join: on a.b_id = b.id; ' +
        'table "islands" has no foreign key, and no foreign key references it',
    ],
    [
      'get islands nest many likes',
      '<stdin>:1:13: no foreign key connects table "islands" with table "likes"; ' +
        'write the condition of the nest many: on a.b_id = b.id; ' +
        'the keys of table "likes" are: likes.user = users.id, or likes.post = posts.key',
    ],
    [
      'get users join ghosts',
      '<stdin>:1:11: no foreign key connects table "users" with table "ghosts" (not in the schema); ' +
        'write the condition of the join: on a.b_id = b.id',
    ],
    [
      'with cities as (get islands) get users join cities',
      '<stdin>:1:40: no foreign key connects table "users" with "cities"; ' +
        'write the condition of the join: on a.b_id = b.id',
    ],
  ])('transpile --schema rejects: %s', async (text, error) => {
    writeFileSync(join(folder, 'shop.schema'), SHOP)
    expect(await svc(['transpile', '--schema', 'shop.schema'], {}, text)).toEqual({ code: 1, out: '', error })
  })
  test('transpile follows a key through a junction, as the gateway does', async () => {
    writeFileSync(
      join(folder, 'tags.schema'),
      'table posts { id int8 primary_key }\n' +
        'table tags { id int8 primary_key }\n' +
        'table post_tags { post int8 references posts (id), tag int8 references tags (id) }\n' +
        'unique index pairs on post_tags (post, "tag")',
    )
    const { out, error } = await svc(['transpile', '--schema', 'tags.schema', '--json'], {}, 'get posts nest many tags')
    expect(error).toBe('')
    expect(JSON.parse(out)).toEqual({
      ok: true,
      sql:
        "SELECT *, (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT * FROM tags WHERE EXISTS (" +
        'SELECT * FROM post_tags AS via WHERE via.post = posts.id AND via.tag = tags.id)) AS n) AS tags FROM posts',
      parameters: [],
    })
  })
  test('the guide shows the output of transpile with and without a schema document', async () => {
    const guide = readFileSync(new URL('../../docs/guides/query-language.md', import.meta.url), 'utf8')
    const blocks = Array.from(guide.matchAll(/^```console\n(.*?)^```/gms), match => match[1] ?? '')
    const shown = blocks.flatMap(block => block.split(/^\$ /m).slice(1)).map(part => part.split(/\n(.*)/s))
    const document = shown.find(([command]) => command === 'cat shop.schema')?.[1] ?? ''
    writeFileSync(join(folder, 'shop.schema'), document)
    let run = 0
    for (const [command = '', said = ''] of shown) {
      const [, text, options] = /^echo '(.*)' \| npx svc transpile(.*)$/.exec(command) ?? []
      if (text === undefined || options === undefined) continue
      const { out, error } = await svc(['transpile', ...options.split(' ').filter(one => one !== '')], {}, text)
      expect([out, error].filter(one => one !== '').join('\n'), command).toBe(said.trimEnd())
      run++
    }
    expect(run).toBe(5)
  })
  test('transpile takes one source of foreign keys and reports its errors', async () => {
    const usage = async (...options: readonly string[]): Promise<string> => {
      const { code, out, error } = await svc(['transpile', ...options], {}, 'get users')
      expect([code, out]).toEqual([2, ''])
      return error
    }
    expect(await usage('--schema', 'a.schema', '--database')).toContain("cannot be used with option '--database'")
    expect(await usage('--config', 'svc.toml')).toContain("requires '--database'")
    expect(await usage('--schema', '-')).toContain('cannot both be standard input')
    expect(await usage('--schema', 'gone.schema')).toBe('gone.schema cannot be read: there is no such file')
    expect(await usage('--database')).toMatch(/^no database is configured: set DATABASE_URL/)
    writeFileSync(join(folder, 'bad.schema'), 'table (')
    const { code, error } = await svc(['transpile', '--schema', 'bad.schema'], {}, 'get users')
    expect([code, error]).toEqual([1, expect.stringMatching(/^bad\.schema: .*line 1/s)])
  })
  test('a missing file is reported', async () => {
    expect(await svc(['parse', 'nope.svc'])).toEqual({
      code: 2,
      out: '',
      error: 'nope.svc cannot be read: there is no such file',
    })
  })
})

describe('schema documents', () => {
  const DOCUMENT = 'table users { id int8 primary_key, name text not_null, tenant_id uuid not_null }'

  test('summary describes a document and its likely problems', async () => {
    const { code, out, error } = await svc(['schema', 'summary', '-'], {}, DOCUMENT)
    expect([code, error]).toEqual([0, ''])
    const summary = JSON.parse(out)
    expect(summary.tables).toMatchObject([{ name: 'users' }])
    expect(JSON.stringify(summary.warnings)).toContain('tenant_id')
  })
  test('types prints a TypeScript module', async () => {
    writeFileSync(join(folder, 'shop.schema'), DOCUMENT)
    const { code, out } = await svc(['types', 'shop.schema', '--out', 'schema.ts'])
    expect([code, out]).toEqual([0, ''])
    expect(readFileSync(join(folder, 'schema.ts'), 'utf8')).toContain('export interface Schema')
  })
  test('an error has its position', async () => {
    const { code, error } = await svc(['schema', 'summary', '-'], {}, 'table users {\n  id int8 primry_key\n}')
    expect(code).toBe(1)
    expect(error).toMatch(/^<stdin>: /)
    expect(error).toContain('line 2')
  })
  test('without a document or a database there is nothing to pull', async () => {
    expect(await svc(['schema', 'pull'])).toMatchObject({ code: 2, out: '' })
  })
})
