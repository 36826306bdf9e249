/** A plan as a tree: estimated rows against actual rows, and the time of each node. */
import { Bar } from '../bar.tsx'
import { TEXTS } from '../texts.ts'
import type { InspectedStatement, PlanNode } from './inspection.ts'
import { figuresOf, numberOf } from './plan.ts'

/** Limit on the nodes that are shown: a table can have thousands of partitions. */
const NODES_SHOWN_MAX = 200

export function PlanView({ statement: { plan, measured } }: { readonly statement: InspectedStatement }) {
  const [first] = plan ?? []
  const root = first?.Plan
  if (first === undefined || root === undefined) return <p class="muted">{TEXTS.explain.noPlan}</p>
  const total = figuresOf(root).ms ?? 0
  const times = ['Planning Time', 'Execution Time'].flatMap(name => {
    const ms = numberOf(first[name])
    return ms === null ? [] : [`${name}: ${TEXTS.ms(ms)}`]
  })
  const count = { left: NODES_SHOWN_MAX }
  return (
    <div class="plan">
      {measured ? <p class="muted">{times.join(', ')}</p> : <p class="muted">{TEXTS.explain.estimatesOnly}</p>}
      <ul>
        <Node node={root} total={total} count={count} />
      </ul>
      {count.left < 0 ? <p class="muted">{TEXTS.explain.moreNodes(NODES_SHOWN_MAX)}</p> : null}
    </div>
  )
}

interface NodeProps {
  readonly node: PlanNode
  readonly total: number
  readonly count: { left: number }
}

function Node({ node, total, count }: NodeProps) {
  count.left -= 1
  if (count.left < 0) return null
  const { title, conditions, estimated, actual, removed, ms, isMisestimated } = figuresOf(node)
  return (
    <li>
      <div class="plan-node">
        <strong>{title}</strong>
        <span>{TEXTS.explain.nodeRows(estimated, actual)}</span>
        {removed > 0 ? <span>{TEXTS.explain.removed(removed)}</span> : null}
        {isMisestimated ? <span class="bad">{TEXTS.explain.misestimated}</span> : null}
        {ms === null ? null : (
          <>
            <span>{TEXTS.ms(ms)}</span>
            <Bar end={total > 0 ? ms / total : 0} />
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
            <Node key={index} node={below} total={total} count={count} />
          ))}
        </ul>
      )}
    </li>
  )
}
