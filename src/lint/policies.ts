/**
 * Lints of policies (docs/reference/checks.md#policies): policies that permit too much, and policies that are
 * slow.
 */
import { settingsOf } from '../identity/settings.ts'
import { nearest } from '../text/nearest.ts'
import type { FoundObject, Lint, LintRow } from './lint.ts'
import { replaceCalls, type SettingCall, settingCalls } from './setting-calls.ts'

/**
 * What can only be determined from the text of a policy's expressions. `known` are the settings that exist
 * without the gateway: those of the role or the database.
 */
const EXPRESSIONS = `
      select q.object, q.alter, q."using", q."check", q.own_tenant, array[]::text[] as sql,
        q.tenant is not null and q.permissive and q."check" <> 'true' and strpos(q."check", q.tenant_name) = 0
          and q."check" !~* '\\mselect\\M' and not q.restricted as forgets_tenant,
        array(
          select split_part(setting.text, '=', 1)
          from pg_catalog.pg_db_role_setting d, me, unnest(d.setconfig) as setting(text)
          where d.setrole in (0, me.oid)
            and d.setdatabase in (0, (select b.oid from pg_catalog.pg_database b where b.datname = current_database()))
        ) as known
      from policy q`

export const POLICY_LINTS: readonly Lint[] = [
  {
    name: 'policy-always-true',
    level: 'error',
    boot: false,
    what: tenant => `Policies with the condition true on tables with the column ${tenant}`,
    why:
      "Permissive policies are combined with OR: one that is true makes every tenant's rows visible, regardless " +
      'of the others. As WITH CHECK it lets callers write rows of other tenants.',
    remedy: 'Compare the tenant column with the setting, or accept the finding if all tenants share the rows.',
    rows: `
      select q.object, array[
        q.alter || case when q."using" = 'true' then format(' using (%s)', q.own_tenant) else '' end
                || case when q."check" = 'true' then format(' with check (%s)', q.own_tenant) else '' end || ';'
      ] as sql
      from policy q
      where q.tenant is not null and q.permissive and (q."using" = 'true' or q."check" = 'true') and not q.restricted`,
  },
  {
    name: 'policy-check-without-tenant',
    level: 'error',
    boot: false,
    what: tenant => `Policies whose WITH CHECK does not compare ${tenant}`,
    why:
      'USING says which rows can be changed, WITH CHECK what they may become: a caller can give a row to another ' +
      'tenant.',
    remedy: 'Compare the tenant column there as well, or omit WITH CHECK: PostgreSQL then uses USING for it.',
    rows: EXPRESSIONS,
    judge: rows => rows.flatMap(row => (trouble(row) === 'tenant' ? tenantAdded(row) : [])),
  },
  {
    name: 'policy-unknown-setting',
    level: 'error',
    boot: false,
    what: () => 'Policies that read a setting which the gateway never sets',
    why: 'It is empty in every request, so a comparison with it is never true; a test for emptiness is always true.',
    remedy: `Read one of the settings that exist: ${settingNames().join(', ')}.`,
    rows: EXPRESSIONS,
    judge: rows => rows.flatMap(row => (trouble(row) === 'setting' ? settingsCorrected(row) : [])),
  },
  {
    name: 'policy-per-row',
    level: 'warning',
    boot: false,
    what: () => 'Policies that read a setting again for every row',
    why:
      'In a sub-select, PostgreSQL reads it once per statement, which makes reads of large tables many times ' +
      'faster.',
    remedy: 'Write (select current_setting(…)) instead of current_setting(…).',
    rows: EXPRESSIONS,
    judge: rows => rows.flatMap(row => (trouble(row) === 'slow' ? callsSelected(row) : [])),
  },
]

/**
 * The most serious problem of a policy. Only one at a time, because each fix rewrites the whole expression,
 * and the next fix would undo the previous one.
 */
function trouble(row: LintRow): 'tenant' | 'setting' | 'slow' | null {
  if (row.forgets_tenant === true) return 'tenant'
  if (unknownSettings(row).length > 0) return 'setting'
  return callsSelected(row).length > 0 ? 'slow' : null
}

function tenantAdded({ object, alter, check, own_tenant }: LintRow): readonly FoundObject[] {
  return [{ object, sql: [`${alter} with check ((${check}) and ${own_tenant});`] }]
}

function callsSelected(row: LintRow): readonly FoundObject[] {
  const statement = altered(
    row,
    call => !call.once,
    text => `(select ${text})`,
  )
  return statement === null ? [] : [{ object: row.object, sql: [statement] }]
}

function settingsCorrected(row: LintRow): readonly FoundObject[] {
  const unknown = unknownSettings(row)
  const meant = new Map(unknown.map(name => [name, nearest(name, settingNames())]))
  const statement = altered(
    row,
    ({ setting }) => setting !== null && typeof meant.get(setting) === 'string',
    (text, { setting }) => text.replace(setting ?? '', meant.get(setting ?? '') ?? ''),
  )
  return [{ object: `${row.object} (${unknown.join(', ')})`, sql: [statement] }]
}

/** Those with a dot in their names; the others are PostgreSQL's own. */
function unknownSettings({ using, check, known }: LintRow): readonly string[] {
  const set = new Set([...settingNames(), ...(known as readonly string[])])
  const calls = [using, check].flatMap(text => (typeof text === 'string' ? settingCalls(text) : []))
  const named = calls.flatMap(({ setting }) => (setting?.includes('.') && !set.has(setting) ? [setting] : []))
  return [...new Set(named)]
}

/** The policy with the given calls replaced; null if it contains none of them. */
function altered(
  { alter, using, check }: LintRow,
  wanted: (call: SettingCall) => boolean,
  replacement: (text: string, call: SettingCall) => string,
): string | null {
  const clauses = [
    ['using', using],
    ['with check', check],
  ] as const
  const changed = clauses.flatMap(([clause, expression]) => {
    if (typeof expression !== 'string') return []
    const calls = settingCalls(expression).filter(wanted)
    return calls.length === 0 ? [] : [` ${clause} (${replaceCalls(expression, calls, replacement)})`]
  })
  return changed.length === 0 ? null : `${alter}${changed.join('')};`
}

/** Those that every request sets (`identity/settings.ts`). */
function settingNames(): readonly string[] {
  const nobody = { tenantId: '', userId: '', agentId: '', role: '', scopes: [], claims: '', expiresAt: null } as const
  return settingsOf({ source: 'anonymous', ...nobody }).map(([name]) => name)
}
