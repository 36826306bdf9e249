/** Parameters. */

import type { Example } from './example.ts'

export const PARAMETERS: readonly Example[] = [
  {
    construct: 'parameter',
    query: 'get users where id = $1 and role = $2',
    formatted: 'get users\nwhere id = $1 and role = $2',
    sql: 'SELECT * FROM users WHERE id = $1 AND role = $2',
    note: 'By position.',
  },
  {
    construct: 'parameter',
    query: 'get users where email = :email',
    formatted: 'get users\nwhere email = :email',
    sql: 'SELECT * FROM users WHERE email = $1',
    note: 'By name.',
  },
  {
    construct: 'parameter',
    query: 'get users where role = :role and age > $1 and (role = :role or age < $2)',
    formatted: 'get users\nwhere role = :role and age > $1 and (role = :role or age < $2)',
    sql: 'SELECT * FROM users WHERE role = $1 AND age > $2 AND (role = $1 OR age < $3)',
    note: 'Both at once; the same one is the same wherever it stands.',
  },
  {
    construct: 'parameter',
    query: 'get users where id in :ids',
    formatted: 'get users\nwhere id in :ids',
    sql: 'SELECT * FROM users WHERE id = ANY($1)',
    note: 'A list in one parameter, however many values it has.',
  },
  {
    construct: 'parameter',
    query: 'get users where id not in $1',
    formatted: 'get users\nwhere id not in $1',
    sql: 'SELECT * FROM users WHERE id <> ALL($1)',
    note: 'None of a list.',
  },
  {
    construct: 'parameter',
    query: 'get users where role in :roles::text[]',
    formatted: 'get users\nwhere role in :roles::text[]',
    sql: 'SELECT * FROM users WHERE role = ANY($1::text[])',
    note: 'With its type.',
  },
  {
    construct: 'parameter',
    query: 'get users where meta @> :filter',
    formatted: 'get users\nwhere meta @> :filter',
    sql: 'SELECT * FROM users WHERE meta @> $1',
    note: 'Any value can be a parameter.',
  },
  {
    construct: 'parameter',
    query: 'add users fields name, email values :name, :email conflict (email) update name = :name',
    formatted: 'add users\nfields name, email\nvalues :name, :email\nconflict (email) update name = :name',
    sql: 'INSERT INTO users (name, email) VALUES ($1, $2) ON CONFLICT (email) DO UPDATE SET name = $1 RETURNING *',
    note: 'In writes.',
  },
  {
    construct: 'parameter',
    query: 'get users where created_at > now() - :window::interval',
    formatted: 'get users\nwhere created_at > now() - :window::interval',
    sql: 'SELECT * FROM users WHERE created_at > NOW() - $1::interval',
    note: 'A cast says what the database cannot guess.',
  },
]
