/** Builds the dependencies of relations from their rows. */
import type { EffectItem, MentionItem, TieItem, UnsteadyItem } from './dependency-sections.ts'
import type { Dependency, NondeterminismCause, RelationMention, Tie } from './model.ts'

export interface DependencyItems {
  readonly ties: readonly TieItem[]
  readonly mentions: readonly MentionItem[]
  readonly unsteady: readonly UnsteadyItem[]
  readonly effects: readonly EffectItem[]
}

interface Draft {
  readonly ties: Tie[]
  readonly mentions: RelationMention[]
  readonly nondeterminism: NondeterminismCause[]
  effect: Dependency['effect']
}

export function buildDependencies({
  ties,
  mentions,
  unsteady,
  effects,
}: DependencyItems): ReadonlyMap<number, Dependency> {
  const drafts = new Map<number, Draft>()
  const draftOf = (relation: number): Draft => {
    const draft = drafts.get(relation) ?? { ties: [], mentions: [], nondeterminism: [], effect: null }
    drafts.set(relation, draft)
    return draft
  }
  for (const { relation, other, how } of ties) draftOf(relation).ties.push({ other, how })
  for (const { relation, ...mention } of mentions) draftOf(relation).mentions.push(mention)
  for (const { relation, cause, name } of unsteady) draftOf(relation).nondeterminism.push({ cause, name })
  for (const { relation, ...effect } of effects) draftOf(relation).effect = effect
  return drafts
}
