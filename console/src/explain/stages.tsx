/** The stages of an inspected request, in the order in which it passes them. */
import type { ComponentChildren } from 'preact'
import { Bar } from '../bar.tsx'
import { TEXTS } from '../texts.ts'
import type { InspectedStatement, InspectedTable, Inspection, PolicyResult } from './inspection.ts'
import { PlanView } from './plan-view.tsx'

const T = TEXTS.explain

interface StagesProps {
  readonly inspection: Inspection
  readonly again: () => void
  /** Executes a write that was only planned. */
  readonly run: () => void
}

export function Stages({ inspection, again, run }: StagesProps) {
  return (
    <>
      <Outcome inspection={inspection} again={again} run={run} />
      <ol class="stages">
        <Stage title={T.caller}>
          <Caller caller={inspection.caller} />
        </Stage>
        <Stage title={T.rights}>
          {inspection.tables.length === 0 ? <p class="muted">{T.noTables}</p> : null}
          {inspection.tables.map(table => (
            <Rights key={table.table} table={table} />
          ))}
        </Stage>
        <Stage title={T.policies}>
          {inspection.tables.length === 0 ? <p class="muted">{T.noTables}</p> : null}
          {inspection.tables.map((table, index) => (
            <Policies
              key={table.table}
              table={table}
              // The row is one of the first table, which the path names.
              results={index === 0 ? (inspection.row?.policies ?? []) : []}
            />
          ))}
        </Stage>
        <Stage title={T.statements}>
          {inspection.tree === null ? null : (
            <>
              <h4>{T.tree}</h4>
              <pre>{inspection.tree}</pre>
            </>
          )}
          {inspection.statements.length === 0 ? <p class="muted">{T.noStatements}</p> : null}
          {inspection.statements.map((statement, index) => (
            <Sql key={statement.sql} statement={statement} number={index + 1} />
          ))}
        </Stage>
        <Stage title={T.guard}>
          {inspection.statements.map(({ sql, cost_guard: guard }) =>
            guard === null ? null : (
              <div key={sql} class="meters">
                <p class={guard.passes ? undefined : 'bad'}>{guard.passes ? T.passes : T.refused}</p>
                <Meter label={T.cost} value={guard.estimated_cost} max={guard.cost_limit} />
                <Meter label={T.estimatedRows} value={guard.estimated_rows} max={guard.row_limit} />
              </div>
            ),
          )}
          <p>{inspection.cache === null ? T.notCached : inspection.cache === 'HIT' ? T.hit : T.miss}</p>
        </Stage>
        <Stage title={T.plan}>
          {inspection.statements.length === 0 ? <p class="muted">{T.noStatements}</p> : null}
          {inspection.statements.map(statement => (
            <PlanView key={statement.sql} statement={statement} />
          ))}
        </Stage>
        <Stage title={T.times}>
          <Waterfall timings={inspection.timings} />
        </Stage>
      </ol>
    </>
  )
}

function Stage({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <li class="card">
      <h3>{title}</h3>
      {children}
    </li>
  )
}

function Outcome({ inspection, again, run }: StagesProps) {
  const { failure, rows, row, changes } = inspection
  return (
    <section class="card" aria-labelledby="outcome">
      <h2 id="outcome">{T.outcome}</h2>
      {failure === null ? (
        <p role="status">{changes === 'planned' ? T.planned : rows === null ? T.answered : T.rows(rows)}</p>
      ) : (
        <p role="alert" class="bad">
          {failure.status} {failure.code}: {failure.message} {failure.hint}
        </p>
      )}
      {changes === 'rolled back' ? <p>{T.rolledBack}</p> : null}
      {row === null ? null : <p>{T.reason[row.reason]}</p>}
      <p>
        <button type="button" onClick={again}>
          {T.again}
        </button>
        {changes === 'planned' ? (
          <button type="button" onClick={run}>
            {T.run}
          </button>
        ) : null}
      </p>
    </section>
  )
}

function Caller({ caller }: { readonly caller: Inspection['caller'] }) {
  const claims = Object.entries(caller.claims)
  return (
    <div class="pairs">
      <div>
        <h4>{T.claims(caller.source)}</h4>
        {claims.length === 0 ? <p class="muted">{T.noClaims}</p> : <Pairs pairs={claims} />}
      </div>
      <div>
        <h4>{T.settings}</h4>
        <Pairs pairs={Object.entries(caller.settings)} />
      </div>
    </div>
  )
}

function Pairs({ pairs }: { readonly pairs: readonly (readonly [string, unknown])[] }) {
  return (
    <dl>
      {pairs.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {value === '' ? (
              <span class="null">{T.empty}</span>
            ) : typeof value === 'string' ? (
              value
            ) : (
              JSON.stringify(value)
            )}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Rights({ table: { table, access, triggers } }: { readonly table: InspectedTable }) {
  return (
    <div>
      <h4>{table}</h4>
      <ul class="facts">
        {access.refused === null ? null : <li class="bad">{access.refused}</li>}
        <li>{access.columns === null ? T.allColumns : T.columns(access.columns.join(', '))}</li>
        <li>{access.rows !== null ? T.limitedRows : access.rows_withheld ? T.withheldRows : T.allRows}</li>
        {access.soft_delete === null ? null : <li>{T.softDelete(access.soft_delete)}</li>}
      </ul>
      {access.rows === null ? null : <pre>{access.rows}</pre>}
      {access.writes.map(({ operation, refused, columns, rows, rows_withheld: withheld }) => (
        <div key={operation}>
          <ul class="facts">
            {refused === null ? null : <li class="bad">{refused}</li>}
            <li>{T.writable(operation, columns?.join(', ') ?? null)}</li>
            <li>{rows !== null ? T.limitedWrites(operation) : withheld ? T.withheldRows : T.allWrites(operation)}</li>
          </ul>
          {rows === null ? null : <pre>{rows}</pre>}
        </div>
      ))}
      {triggers.length === 0 ? null : (
        <ul class="facts">
          {triggers.map(trigger => (
            <li key={trigger.name}>
              {T.trigger(trigger.name, `${trigger.timing} ${trigger.operations.join(', ')}`, trigger.function)}
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

interface PoliciesProps {
  readonly table: InspectedTable
  readonly results: readonly PolicyResult[]
}

function Policies({ table: { table, row_security: security }, results }: PoliciesProps) {
  if (security === null) return null
  return (
    <div>
      <h4>{table}</h4>
      <p>{!security.active ? (security.enabled ? T.bypassed : T.notEnabled) : T.enforced(security.policies.length)}</p>
      {security.active && security.policies.length === 0 ? <p class="bad">{T.noPolicy}</p> : null}
      <ul class="policies">
        {security.policies.map(policy => {
          const result = results.find(one => one.policy === policy.name)
          return (
            <li key={policy.name}>
              <strong>{policy.name}</strong>{' '}
              <span class="muted">{policy.permissive ? T.permissive : T.restrictive}</span>
              {result === undefined ? null : (
                <span class={result.result === false ? 'verdict bad' : 'verdict'}>
                  {result.result === null ? T.resultUnknown : result.result ? T.resultTrue : T.resultFalse}
                </span>
              )}
              {policy.withheld ? <p class="muted">{T.withheld}</p> : null}
              {policy.condition === null ? null : <pre>{policy.condition}</pre>}
              {policy.check === null ? null : (
                <>
                  <p class="muted">{T.check}</p>
                  <pre>{policy.check}</pre>
                </>
              )}
            </li>
          )
        })}
      </ul>
      {security.complete ? null : <p class="muted">{T.morePolicies}</p>}
    </div>
  )
}

function Sql({
  statement: { sql, parameters },
  number,
}: {
  readonly statement: InspectedStatement
  readonly number: number
}) {
  return (
    <>
      <h4>{T.sql(number)}</h4>
      <pre>{sql}</pre>
      {parameters.length === 0 ? null : <Pairs pairs={parameters.map((value, index) => [`$${index + 1}`, value])} />}
    </>
  )
}

function Meter({ label, value, max }: { readonly label: string; readonly value: number; readonly max: number | null }) {
  return (
    <div class="figure">
      <span>
        {label}: {T.against(value, max)}
      </span>
      {max === null ? null : <Bar end={value / max} />}
    </div>
  )
}

function Waterfall({ timings }: { readonly timings: Inspection['timings'] }) {
  const end = Math.max(...timings.map(({ start_ms, ms }) => start_ms + ms), 0.01)
  return (
    <ul class="waterfall">
      {timings.map(({ name, start_ms: start, ms }) => (
        <li key={`${name} ${start}`} class="figure">
          <span>
            {T.phase[name]}: {TEXTS.ms(ms)}
          </span>
          <Bar start={start / end} end={(start + ms) / end} />
        </li>
      ))}
    </ul>
  )
}
