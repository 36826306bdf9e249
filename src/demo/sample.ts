/** The sample business as a list of SQL statements, and the values that a demo or a test needs to use it. */
import { createHash } from 'node:crypto'
import { grants, indexes, policies, views } from './sample/access.ts'
import { comments } from './sample/comments.ts'
import { functions } from './sample/functions.ts'
import { rows } from './sample/rows.ts'
import { tables } from './sample/tables.ts'

export interface SampleTenant {
  readonly id: string
  readonly name: string
  readonly slug: string
  /** A clerk's id, for tokens. */
  readonly userId: string
}

/** In order of size, largest first. User n of shop s has the id `md5(s:n)`; the seventh is a clerk. */
export const SAMPLE_TENANTS: readonly SampleTenant[] = [
  { id: '11111111-1111-4111-8111-111111111111', name: 'Northlight Bikes', slug: 'northlight', userId: userId('1:7') },
  { id: '22222222-2222-4222-8222-222222222222', name: 'Harbour Coffee', slug: 'harbour', userId: userId('2:7') },
  { id: '33333333-3333-4333-8333-333333333333', name: 'Atelier Lumière', slug: 'lumiere', userId: userId('3:7') },
]

/** Owns every object and cannot log in. */
export const OWNER_ROLE = 'svc_owner'

/**
 * Returns all statements, for a superuser in an empty database: rows are loaded before keys are indexed and
 * before policies apply. `role` gets the privileges of the gateway; it and the owner must exist.
 */
export function sampleStatements(role: string): readonly string[] {
  return [
    `grant create on schema public to ${OWNER_ROLE}`,
    `set role ${OWNER_ROLE}`,
    ...tables,
    `reset role`,
    // Foreign keys hold by construction, and a test checks every one of them; checking here would double the
    // time.
    `set session_replication_role = replica`,
    ...rows,
    `reset session_replication_role`,
    `set role ${OWNER_ROLE}`,
    ...indexes,
    ...policies,
    ...views,
    ...functions,
    ...comments,
    ...grants(role),
    `reset role`,
    `vacuum (analyze)`,
  ]
}

/**
 * A hash of the sample. It is part of the data folder's name, so that a folder with an older sample is not
 * reused.
 */
export const SAMPLE_VERSION: string = createHash('sha256').update(sampleStatements('').join()).digest('hex').slice(0, 8)

function userId(seed: string): string {
  return createHash('md5')
    .update(seed)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
