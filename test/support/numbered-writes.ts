/**
 * Writes of every kind that the API offers. Each has a number that is stored in the rows it changes, so that
 * every change can be identified in the tables, in an audit of them, and in webhooks and events about them.
 */

/**
 * A change as the audit table records it: table, operation, id, and number of the write; for a deletion, of
 * the last write before it.
 */
export type Change = `${'notes' | 'counters'} ${'INSERT' | 'UPDATE' | 'DELETE'} ${number} ${number}`

export interface Write {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The changes that the write makes if it succeeds. */
  readonly changes: readonly Change[]
  /** `refused` means that one part fails, so no part may take effect. */
  readonly expected: 'done' | 'refused'
}

/** Number of teams. The counters of a team are incremented together or individually. */
const TEAMS = 75
const TEAM_SIZE = 2

/** The API does not serve `audit.change`. It contains the committed changes, whatever the gateway assumes. */
export const NUMBERED_TABLES: string = `
create table owners (id int primary key);
create table notes (id int primary key, write int not null, owner int references owners deferrable initially deferred);
create table counters (id int primary key, team int not null, version int not null, write int not null);
insert into counters select n, n / ${TEAM_SIZE}, 0, 0 from generate_series(0, ${TEAMS * TEAM_SIZE - 1}) as n;
grant all on owners, notes, counters to app;
create schema audit;
create table audit.change (change text not null);
create function audit.note() returns trigger language plpgsql security definer as $$
begin
  insert into audit.change values (concat_ws(
    ' ', tg_table_name, tg_op, coalesce(new.id, old.id), coalesce(new.write, old.write)));
  return null;
end $$;
create trigger note after insert or update or delete on notes for each row execute function audit.note();
create trigger note after insert or update or delete on counters for each row execute function audit.note()`

export interface Writer {
  next(): Write
  /** Reports that the write took effect. Do not call it if the outcome is unknown. */
  done(write: Write): void
}

/**
 * `number` returns a new number at each call, unique among all writers. Each writer changes only its own
 * notes; counters are shared.
 */
export function createWriter(number: () => number): Writer {
  /** The rows that certainly exist, with the number of their last write. */
  const rows = new Map<number, number>()
  let turn = 0

  /** Takes rows from the writer. They are returned when the outcome of the write is known. */
  function take(count: number): readonly (readonly [id: number, write: number])[] {
    const taken = [...rows].slice(0, count)
    for (const [id] of taken) rows.delete(id)
    return taken
  }

  return {
    next() {
      const make = turn % EVERY === 0 ? REFUSED[(turn / EVERY) % REFUSED.length] : DONE[turn % DONE.length]
      turn += 1
      // At the beginning there are no rows to change.
      return (rows.size < 2 ? createOne : (make ?? createOne))(number(), take)
    },
    done({ changes }) {
      for (const change of changes) {
        const [table, operation, id, write] = change.split(' ')
        if (table === 'notes' && operation !== 'DELETE') rows.set(Number(id), Number(write))
      }
    },
  }
}

type Make = (write: number, take: (count: number) => readonly (readonly [id: number, write: number])[]) => Write

/** The ids of the rows that a write creates. */
const ids = (write: number): readonly [number, number] => [write * 2, write * 2 + 1]

const JSON_BODY = { 'Content-Type': 'application/json' }

function post(
  path: string,
  body: unknown,
  changes: readonly Change[],
  headers: Readonly<Record<string, string>> = {},
): Write {
  return { method: 'POST', path, body, changes, headers: { ...JSON_BODY, ...headers }, expected: 'done' }
}

function patch(path: string, write: number, changes: readonly Change[]): Write {
  return { method: 'PATCH', path, headers: JSON_BODY, body: { write }, changes, expected: 'done' }
}

function remove(path: string, changes: readonly Change[]): Write {
  return { method: 'DELETE', path, changes, expected: 'done' }
}

const query = (text: string, changes: readonly Change[]): Write => post('/api/_query', { query: text }, changes)

const createOne: Make = write => {
  const [id] = ids(write)
  return post('/api/notes', { id, write }, [`notes INSERT ${id} ${write}`])
}

const createSome: Make = write =>
  post(
    '/api/notes',
    ids(write).map(id => ({ id, write })),
    ids(write).map(id => `notes INSERT ${id} ${write}` as const),
  )

const changeOne: Make = (write, take) => {
  const [[id] = []] = take(1)
  return patch(`/api/notes/${id}`, write, [`notes UPDATE ${Number(id)} ${write}`])
}

const changeSome: Make = (write, take) => {
  const changed = take(2).map(([id]) => id)
  return patch(
    `/api/notes?id=in.(${changed})`,
    write,
    changed.map(id => `notes UPDATE ${id} ${write}` as const),
  )
}

const upsert: Make = (write, take) => {
  const [[old] = []] = take(1)
  const [id] = ids(write)
  const changes = [`notes UPDATE ${Number(old)} ${write}`, `notes INSERT ${id} ${write}`] as const
  const rows = [
    { id: old, write },
    { id, write },
  ]
  return post('/api/notes', rows, changes, { 'X-Upsert': 'true', 'X-On-Conflict': 'id' })
}

const deleteOne: Make = (_, take) => {
  const [[id, write] = []] = take(1)
  return remove(`/api/notes/${id}`, [`notes DELETE ${Number(id)} ${Number(write)}`])
}

const deleteSome: Make = (_, take) => {
  const gone = take(2)
  return remove(
    `/api/notes?id=in.(${gone.map(([id]) => id)})`,
    gone.map(([id, write]) => `notes DELETE ${id} ${write}` as const),
  )
}

const addByQuery: Make = write => {
  const [one, other] = ids(write)
  return query(`add notes fields id, write values (${one}, ${write}), (${other}, ${write})`, [
    `notes INSERT ${one} ${write}`,
    `notes INSERT ${other} ${write}`,
  ])
}

const countOne: Make = write => {
  const id = write % (TEAMS * TEAM_SIZE)
  return query(`set counters values version = version + 1, write = ${write} where id = ${id}`, [
    `counters UPDATE ${id} ${write}`,
  ])
}

const countTeam: Make = write => {
  const team = write % TEAMS
  const members = Array.from({ length: TEAM_SIZE }, (_, index) => team * TEAM_SIZE + index)
  return query(
    `set counters values version = version + 1, write = ${write} where team = ${team}`,
    members.map(id => `counters UPDATE ${id} ${write}` as const),
  )
}

const DONE: readonly Make[] = [
  ...[createOne, createSome, changeOne, changeSome, upsert, deleteOne, addByQuery, countOne, countTeam],
  ...[createOne, createSome, changeOne, changeSome, upsert, deleteSome, addByQuery, countOne, countTeam],
]

/**
 * One write of this many is rejected. It must not divide the number of accepted kinds, or the same kind would
 * always be replaced.
 */
const EVERY = 11

/** Writes that must be rejected. Each contains rows that would be valid alone. */
const REFUSED: readonly Make[] = [
  // The last row of a batch is invalid.
  (write, take) => {
    const { body, ...create } = createSome(write, take)
    return { ...create, body: [...(body as readonly unknown[]), { id: -write, write: null }], expected: 'refused' }
  },
  // The write fails at the commit, after all rows and their deliveries have been written.
  (write, take) => {
    const { body, ...create } = createSome(write, take)
    return { ...create, body: [...(body as readonly unknown[]), { id: -write, write, owner: 0 }], expected: 'refused' }
  },
  // More rows match than the request allows to change.
  (write, take) => ({
    ...changeSome(write, take),
    headers: { ...JSON_BODY, 'X-Max-Affected': '1' },
    expected: 'refused',
  }),
  // The last row of a query is invalid.
  write => ({
    ...query(`add notes fields id, write values (${ids(write)[0]}, ${write}), (${-write}, null)`, [
      `notes INSERT ${ids(write)[0]} ${write}`,
    ]),
    expected: 'refused',
  }),
]
