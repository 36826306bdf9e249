/** What the relations of the model bring with them, from the rows that are about it. */
import type { EffectItem, TieItem, UnsteadyItem } from './dependence-sections.ts'
import type { Dependence, Tie, Unsteady } from './model.ts'

export interface DependenceItems {
  readonly ties: readonly TieItem[]
  readonly unsteady: readonly UnsteadyItem[]
  readonly effects: readonly EffectItem[]
}

interface Draft {
  readonly ties: Tie[]
  readonly unsteady: Unsteady[]
  effect: Dependence['effect']
}

export function buildDependences({ ties, unsteady, effects }: DependenceItems): ReadonlyMap<number, Dependence> {
  const drafts = new Map<number, Draft>()
  const draftOf = (relation: number): Draft => {
    const draft = drafts.get(relation) ?? { ties: [], unsteady: [], effect: null }
    drafts.set(relation, draft)
    return draft
  }
  for (const { relation, other, how } of ties) draftOf(relation).ties.push({ other, how })
  for (const { relation, cause, name } of unsteady) draftOf(relation).unsteady.push({ cause, name })
  for (const { relation, ...effect } of effects) draftOf(relation).effect = effect
  return drafts
}
