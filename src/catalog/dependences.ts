/** What the relations of the model bring with them, from the rows that are about it. */
import type { EffectItem, MentionItem, TieItem, UnsteadyItem } from './dependence-sections.ts'
import type { Dependence, RelationMention, Tie, Unsteady } from './model.ts'

export interface DependenceItems {
  readonly ties: readonly TieItem[]
  readonly mentions: readonly MentionItem[]
  readonly unsteady: readonly UnsteadyItem[]
  readonly effects: readonly EffectItem[]
}

interface Draft {
  readonly ties: Tie[]
  readonly mentions: RelationMention[]
  readonly unsteady: Unsteady[]
  effect: Dependence['effect']
}

export function buildDependences({
  ties,
  mentions,
  unsteady,
  effects,
}: DependenceItems): ReadonlyMap<number, Dependence> {
  const drafts = new Map<number, Draft>()
  const draftOf = (relation: number): Draft => {
    const draft = drafts.get(relation) ?? { ties: [], mentions: [], unsteady: [], effect: null }
    drafts.set(relation, draft)
    return draft
  }
  for (const { relation, other, how } of ties) draftOf(relation).ties.push({ other, how })
  for (const { relation, ...mention } of mentions) draftOf(relation).mentions.push(mention)
  for (const { relation, cause, name } of unsteady) draftOf(relation).unsteady.push({ cause, name })
  for (const { relation, ...effect } of effects) draftOf(relation).effect = effect
  return drafts
}
