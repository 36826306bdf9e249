/** docs/guides/coming-from-postgrest.md: relations embedded in rows, and aggregates. */
import { describe, expect, test } from 'vitest'
import { postgrestFixture } from '../support/postgrest.ts'

const { ask } = postgrestFixture(
  `create table clients (id int primary key, name text not null);
   create table projects (id int primary key, name text not null, client_id int references clients, cost numeric);
   create table details (project_id int primary key references projects, note text);
   create table tasks (id int primary key, name text not null, project_id int references projects, hours int);
   create table users (id int primary key, name text not null);
   create table users_tasks (
     user_id int references users, task_id int references tasks, primary key (user_id, task_id)
   );
   create table users_projects (
     user_id int references users, project_id int references projects, primary key (user_id, project_id)
   );
   create table messages (
     id int primary key, body text,
     sender int constraint message_sender references users, recipient int constraint message_recipient references users
   );
   create table places (id int primary key, name text not null, parent int references places);
   insert into clients values (1, 'Microsoft'), (2, 'Apple'), (3, 'Idle');
   insert into projects values (1, 'Windows 7', 1, 10), (2, 'Windows 10', 1, 30), (3, 'IOS', 2, 5), (4, 'OSX', 2, 7),
     (5, 'Orphan', null, 1);
   insert into details values (1, 'old'), (3, 'phone');
   insert into tasks values (1, 'Design w7', 1, 2), (2, 'Code w7', 1, 4), (3, 'Design w10', 2, 8),
     (4, 'Design IOS', 3, 1);
   insert into users values (1, 'Angela'), (2, 'Michael'), (3, 'Dwight');
   insert into users_tasks values (1, 1), (1, 2), (2, 3), (2, 1);
   insert into users_projects values (1, 1), (2, 2);
   insert into messages values (1, 'Hi', 1, 2), (2, 'Yo', 2, 1);
   insert into places values (1, 'World', null), (2, 'Europe', 1), (3, 'Asia', 1);
   create function all_projects() returns setof projects language sql stable as 'select * from projects';
   create function project(wanted int) returns projects language sql stable as
     'select * from projects where id = wanted';
   create function pairs() returns table (a int, b int) language sql stable as 'select 1, 2';
   grant usage on schema public to :anon;
   grant select on all tables in schema public to :anon`,
  'aggregates_enabled = true',
)

async function rows(path: string): Promise<unknown> {
  const reply = await ask(path)
  expect(reply.status, reply.text).toBe(200)
  return reply.json
}

describe('an embedded relation', () => {
  test('of a foreign key is an object or null', async () => {
    expect(await rows('/projects?select=id,clients(name)&id=in.(1,5)&order=id')).toEqual([
      { id: 1, clients: { name: 'Microsoft' } },
      { id: 5, clients: null },
    ])
  })
  test('that refers to the rows is an array', async () => {
    expect(await rows('/clients?select=name,projects(id)&order=id&projects.order=id.desc')).toEqual([
      { name: 'Microsoft', projects: [{ id: 2 }, { id: 1 }] },
      { name: 'Apple', projects: [{ id: 4 }, { id: 3 }] },
      { name: 'Idle', projects: [] },
    ])
  })
  test('with a unique key is an object in both directions', async () => {
    expect(await rows('/projects?select=id,details(note)&id=in.(1,2)&order=id')).toEqual([
      { id: 1, details: { note: 'old' } },
      { id: 2, details: null },
    ])
    expect(await rows('/details?select=projects(name)&project_id=eq.3')).toEqual([{ projects: { name: 'IOS' } }])
  })
  test('can be reached through a junction table', async () => {
    expect(await rows('/users?select=name,tasks(id)&order=id&tasks.order=id')).toEqual([
      { name: 'Angela', tasks: [{ id: 1 }, { id: 2 }] },
      { name: 'Michael', tasks: [{ id: 1 }, { id: 3 }] },
      { name: 'Dwight', tasks: [] },
    ])
  })
  // Without statistics, PostgreSQL expects about two thousand rows in each table.
  test.each([
    ['/users?select=id,tasks!inner()', [1, 2]],
    ['/users?select=id,tasks!inner(id)&tasks.id=eq.3', [2]],
    ['/users?select=id,tasks!inner(projects!inner())&tasks.projects.name=eq.Windows 10', [2]],
    ['/users?select=id,tasks()&tasks=is.null', [3]],
    ['/users?select=id,tasks()&or=(tasks.is.null,name.eq.Angela)', [1, 3]],
  ])('reached through a junction does not cost a product of tables: %s', async (path, expected) => {
    const found = (await rows(`${path}&order=id`)) as readonly { readonly id: number }[]
    expect(found.map(({ id }) => id)).toEqual(expected)
  })
  test('can be without columns, with all columns, renamed, and nested', async () => {
    expect(await rows('/tasks?select=project:projects(*,client:clients(id)),id&id=eq.1')).toEqual([
      { id: 1, project: { id: 1, name: 'Windows 7', client_id: 1, cost: 10, client: { id: 1 } } },
    ])
    expect(await rows('/tasks?select=projects(clients(name))&id=eq.1')).toEqual([
      { projects: { clients: { name: 'Microsoft' } } },
    ])
    expect(await rows('/tasks?select=id,projects()&id=eq.1')).toEqual([{ id: 1 }])
  })
  test('of the same table is named by table or by column', async () => {
    expect(await rows('/places?select=name,children:places(name),parent(name)&id=lt.3&order=id')).toEqual([
      { name: 'World', children: [{ name: 'Europe' }, { name: 'Asia' }], parent: null },
      { name: 'Europe', children: [], parent: { name: 'World' } },
    ])
  })
  test('can be chosen by constraint, column or junction', async () => {
    expect(
      await rows('/messages?select=from:users!message_sender(name),to:users!recipient(name),recipient(id)&id=eq.1'),
    ).toEqual([{ from: { name: 'Angela' }, to: { name: 'Michael' }, recipient: { id: 2 } }])
    expect(await rows('/users?select=tasks!users_tasks(id)&id=eq.3')).toEqual([{ tasks: [] }])
  })
  test('has filters, order, limit and offset at every level', async () => {
    const path = '/clients?select=id,projects(id,tasks(id))&id=eq.1'
    expect(await rows(`${path}&projects.id=eq.1&projects.tasks.order=id.desc&projects.tasks.limit=1`)).toEqual([
      { id: 1, projects: [{ id: 1, tasks: [{ id: 2 }] }] },
    ])
    expect(await rows(`${path}&projects.order=id&projects.offset=1&projects.tasks.or=(id.eq.9,hours.gt.5)`)).toEqual([
      { id: 1, projects: [{ id: 2, tasks: [{ id: 3 }] }] },
    ])
  })
})

describe('the parent rows of an embedded relation', () => {
  test('are limited to those with a match by !inner', async () => {
    expect(await rows('/clients?select=id,projects!inner(id)&projects.name=eq.IOS')).toEqual([
      { id: 2, projects: [{ id: 3 }] },
    ])
    expect(await rows('/clients?select=id,projects!inner(tasks!inner(id))&projects.tasks.hours=gt.5')).toEqual([
      { id: 1, projects: [{ tasks: [{ id: 3 }] }] },
    ])
    const counted = await ask('/clients?select=id,projects!inner(id)', { headers: { Prefer: 'count=exact' } })
    expect(counted.headers.get('content-range')).toBe('0-1/2')
  })
  test('can be filtered by the presence of a match', async () => {
    expect(await rows('/clients?select=id,projects()&projects=is.null')).toEqual([{ id: 3 }])
    expect(await rows('/clients?select=id,p:projects()&p=not.is.null&order=id')).toEqual([{ id: 1 }, { id: 2 }])
    const path = '/projects?select=id,clients(),tasks()&order=id&clients.name=eq.Apple&or=(clients.not.is.null,id.eq.5)'
    expect(await rows(path)).toEqual([{ id: 3 }, { id: 4 }, { id: 5 }])
  })
  test('can be sorted by a column of a to-one relation', async () => {
    expect(await rows('/projects?select=id,clients(name)&order=clients(name).desc.nullslast,id.desc&limit=3')).toEqual([
      { id: 2, clients: { name: 'Microsoft' } },
      { id: 1, clients: { name: 'Microsoft' } },
      { id: 4, clients: { name: 'Apple' } },
    ])
  })
})

describe('a spread relation', () => {
  test('adds its columns to the row', async () => {
    expect(
      await rows('/tasks?select=id,...projects(project:name,...clients(client:name))&id=in.(1,4)&order=id'),
    ).toEqual([
      { id: 1, project: 'Windows 7', client: 'Microsoft' },
      { id: 4, project: 'IOS', client: 'Apple' },
    ])
    expect(await rows('/tasks?select=id,...projects(clients(name))&id=eq.1')).toEqual([
      { id: 1, clients: { name: 'Microsoft' } },
    ])
    expect(await rows('/details?select=...projects(*)&project_id=eq.1')).toEqual([
      { id: 1, name: 'Windows 7', client_id: 1, cost: 10 },
    ])
  })
  test('of several rows adds arrays', async () => {
    expect(
      await rows('/clients?select=id,...projects(ids:id,names:name,tasks(id))&order=id&projects.order=id&id=gt.1'),
    ).toEqual([
      { id: 2, names: ['IOS', 'OSX'], ids: [3, 4], tasks: [[{ id: 4 }], []] },
      { id: 3, names: [], ids: [], tasks: [] },
    ])
  })
})

describe('aggregates', () => {
  test.each<[path: string, expected: unknown]>([
    ['/projects?select=count()', [{ count: 5 }]],
    ['/projects?select=count', [{ count: 5 }]],
    ['/projects?select=n:count()::text', [{ n: '5' }]],
    [
      '/projects?select=cost.sum(),cost.avg(),cost.min(),cost.max(),cost.count()',
      [{ sum: 53, avg: 10.6, min: 1, max: 30, count: 5 }],
    ],
    [
      '/projects?select=client_id,total:cost.sum()&order=client_id',
      [
        { client_id: 1, total: 40 },
        { client_id: 2, total: 12 },
        { client_id: null, total: 1 },
      ],
    ],
    ['/projects?select=s:name::text.max()::varchar', [{ s: 'Windows 7' }]],
    [
      '/clients?select=name,projects(cost.sum(),count())&order=id',
      [
        { name: 'Microsoft', projects: [{ sum: 40, count: 2 }] },
        { name: 'Apple', projects: [{ sum: 12, count: 2 }] },
        { name: 'Idle', projects: [{ sum: null, count: 0 }] },
      ],
    ],
    ['/projects?select=total:cost.sum(),clients(name)&order=client_id', 400],
    [
      '/projects?select=client_id,total:cost.sum(),clients(name)&order=client_id',
      [
        { client_id: 1, total: 40, clients: { name: 'Microsoft' } },
        { client_id: 2, total: 12, clients: { name: 'Apple' } },
        { client_id: null, total: 1, clients: null },
      ],
    ],
    [
      '/tasks?select=...projects(client_id,cost.sum())&order=projects(client_id)',
      [
        { client_id: 1, sum: 50 },
        { client_id: 2, sum: 5 },
      ],
    ],
    ['/tasks?select=hours.sum(),...projects(...clients(client:name))&order=projects(clients)', 400],
    [
      '/clients?select=name,...projects(count(),cost.avg())&order=name',
      [
        { name: 'Apple', count: 2, avg: 6 },
        { name: 'Idle', count: 0, avg: null },
        { name: 'Microsoft', count: 2, avg: 20 },
      ],
    ],
    [
      '/clients?select=name,...projects(id,count())&order=name&projects.order=id',
      [
        { name: 'Apple', id: [3, 4], count: 2 },
        { name: 'Idle', id: [], count: 0 },
        { name: 'Microsoft', id: [1, 2], count: 2 },
      ],
    ],
    ['/clients?select=...projects(cost.sum())', [{ sum: 52 }]],
    ['/clients?select=...projects(...tasks(hours.max(),n:count()))', [{ max: 8, n: 4 }]],
  ])('are computed for the groups of the other members: %s', async (path, expected) => {
    const reply = await ask(path)
    expect(typeof expected === 'number' ? reply.status : reply.json, reply.text).toEqual(expected)
  })
})

describe('rows of a function', () => {
  test('that are rows of a table can have embedded relations and aggregates', async () => {
    const path = '/rpc/all_projects?select=id,clients!inner(name),tasks(id)&clients.name=eq.Apple&order=id'
    expect(await rows(path)).toEqual([
      { id: 3, clients: { name: 'Apple' }, tasks: [{ id: 4 }] },
      { id: 4, clients: { name: 'Apple' }, tasks: [] },
    ])
    expect(await rows('/rpc/project?wanted=1&select=name,...clients(client:name)')).toEqual({
      name: 'Windows 7',
      client: 'Microsoft',
    })
    expect(await rows('/rpc/all_projects?select=id.max(),client_id&order=client_id')).toEqual([
      { max: 2, client_id: 1 },
      { max: 4, client_id: 2 },
      { max: 5, client_id: null },
    ])
  })
  test('that belong to no table are answered with PGRST200', async () => {
    const reply = await ask('/rpc/pairs?select=a,clients(*)')
    expect([reply.status, reply.json.code]).toEqual([400, 'PGRST200'])
  })
})

describe('names', () => {
  test('of a column and a relation can be the same', async () => {
    expect((await ask('/projects?select=*,client_id(name)&id=eq.1')).text).toBe(
      '[{"id":1,"name":"Windows 7","client_id":1,"cost":10,"client_id":{"name":"Microsoft"}}]',
    )
    expect((await ask('/projects?select=name,...clients(name)&id=eq.1')).text).toBe(
      '[{"name":"Windows 7","name":"Microsoft"}]',
    )
    expect((await ask('/projects?select=id,id&id=eq.1', { headers: { Accept: 'text/csv' } })).text).toBe('id,id\n1,1')
  })
  test('of aggregates are those of their functions', async () => {
    expect(await rows('/tasks?select=hours::text.max(),name->x.count()')).toEqual([{ max: '8', count: 0 }])
  })
})

test('an embedded row can be skipped by offset', async () => {
  expect(await rows('/projects?select=id,clients(name)&id=eq.1&clients.offset=1')).toEqual([{ id: 1, clients: null }])
})

describe('a relation that cannot be embedded', () => {
  test('is answered with PGRST200', async () => {
    const reply = await ask('/projects?select=*,wombat(*)')
    expect([reply.status, reply.json]).toEqual([
      400,
      {
        code: 'PGRST200',
        details:
          "Searched for a foreign key relationship between 'projects' and 'wombat' in the schema 'public', " +
          'but no matches were found.',
        hint: null,
        message: "Could not find a relationship between 'projects' and 'wombat' in the schema cache",
      },
    ])
    for (const near of ['cliens', 'clients_archived']) {
      const { json } = await ask(`/projects?select=${near}(*)`)
      expect(json.hint).toBe(`Perhaps you meant 'clients' instead of '${near}'.`)
    }
    expect((await ask('/projects?select=clients!nope(*)')).json.details).toContain("using the hint 'nope'")
  })
  test('is answered with PGRST201 and the choices if there are several', async () => {
    const reply = await ask('/messages?select=users(*)')
    expect([reply.status, reply.json]).toEqual([
      300,
      {
        code: 'PGRST201',
        details: [
          {
            cardinality: 'many-to-one',
            embedding: 'messages with users',
            relationship: 'message_recipient using messages(recipient) and users(id)',
          },
          {
            cardinality: 'many-to-one',
            embedding: 'messages with users',
            relationship: 'message_sender using messages(sender) and users(id)',
          },
        ],
        hint:
          "Try changing 'users' to one of the following: 'users!message_recipient', 'users!message_sender'. " +
          "Find the desired relationship in the 'details' key.",
        message: "Could not embed because more than one relationship was found for 'messages' and 'users'",
      },
    ])
  })
  test.each([
    ['/clients?select=id,projects(id)&order=projects(id)', 400, 'PGRST118'],
    ['/clients?select=id&order=projects(id)', 400, 'PGRST108'],
    ['/clients?select=id,projects(id)&projects=eq.1', 400, 'PGRST120'],
    ['/clients?select=id,projects(nope)', 400, '42703'],
  ])('%s → %i %s', async (path, status, code) => {
    const reply = await ask(path)
    expect([reply.status, reply.json.code]).toEqual([status, code])
  })
})
