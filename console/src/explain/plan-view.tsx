/** A plan as a tree: for each node, bars of its estimated and actual rows, and its time. */
import { Bar } from '../bar.tsx'
import { TEXTS } from '../texts.ts'
import type { InspectedStatement, PlanNode } from './inspection.ts'
import { figuresOf, mostRows, numberOf, shareOfRows } from './plan.ts'

/** Limit on the nodes that are shown: a table can have thousands of partitions. */
const NODES_SHOWN_MAX = 200

export function PlanView({ statement: { plan, measured } }: { readonly statement: InspectedStatement }) {
  const [first] = plan ?? []
  const root = first?.Plan
  if (first === undefined || root === undefined) return <p class="muted">{TEXTS.explain.noPlan}</p>
  const whole = { ms: figuresOf(root).ms ?? 0, rows: mostRows(root) }
  const times = ['Planning Time', 'Execution Time'].flatMap(name => {
    const ms = numberOf(first[name])
    return ms === null ? [] : [`${name}: ${TEXTS.ms(ms)}`]
  })
  const count = { left: NODES_SHOWN_MAX }
  return (
    <div class="plan">
      {measured ? <p class="muted">{times.join(', ')}</p> : <p class="muted">{TEXTS.explain.estimatesOnly}</p>}
      <p class="muted">{TEXTS.explain.legend}</p>
      <ul>
        <Node node={root} whole={whole} count={count} />
      </ul>
      {count.left < 0 ? <p class="muted">{TEXTS.explain.moreNodes(NODES_SHOWN_MAX)}</p> : null}
    </div>
  )
}

interface NodeProps {
  readonly node: PlanNode
  /** The time of the whole plan, and the most rows of a node. */
  readonly whole: { readonly ms: number; readonly rows: number }
  readonly count: { left: number }
}

function Node({ node, whole, count }: NodeProps) {
  count.left -= 1
  if (count.left < 0) return null
  const { title, conditions, estimated, actual, removed, ms, isMisestimated } = figuresOf(node)
  return (
    <li>
      <div class="plan-node">
        <strong>{title}</strong>
        <span>{TEXTS.explain.nodeRows(estimated, actual)}</span>
        <span class="plan-rows">
          {[estimated, actual].map((rows, index) =>
            rows === null ? null : (
              <Bar key={index === 0 ? 'estimated' : 'actual'} end={shareOfRows(rows, whole.rows)} />
            ),
          )}
        </span>
        {removed > 0 ? <span>{TEXTS.explain.removed(removed)}</span> : null}
        {isMisestimated ? <span class="bad">{TEXTS.explain.misestimated}</span> : null}
        {ms === null ? null : (
          <>
            <span>{TEXTS.ms(ms)}</span>
            <Bar end={whole.ms > 0 ? ms / whole.ms : 0} />
          </>
        )}
        {conditions.map(([name, text]) => (
          <code key={name}>
            {name}: {text}
          </code>
        ))}
      </div>
      {node.Plans === undefined || node.Plans.length === 0 ? null : (
        <ul>
          {node.Plans.map((below, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: its nodes have no names
            <Node key={index} node={below} whole={whole} count={count} />
          ))}
        </ul>
      )}
    </li>
  )
}
