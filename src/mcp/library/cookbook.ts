/**
 * The recipes of `docs/guides/builder.md`: a section with a block of TypeScript, the query it makes, and the
 * SQL of that.
 */
import type { Recipe } from './model.ts'
import { splitSections } from './sections.ts'

const TOPIC_LEVEL = 2
const RECIPE_LEVEL = 3

/**
 * Throws where a section that should be a recipe lacks a block: a guide that is written wrong is not shipped.
 */
export function readRecipes(guide: string): readonly Recipe[] {
  const recipes: Recipe[] = []
  let topic = ''
  for (const { level, title, slug, markdown } of splitSections(guide)) {
    if (level === TOPIC_LEVEL) topic = slug
    if (level !== RECIPE_LEVEL) continue
    const block = (language: string): string => {
      const found = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)\\n\`\`\`$`, 'm').exec(markdown)?.[1]
      if (found === undefined) throw new Error(`the recipe "${title}" has no block of ${language}`)
      return found
    }
    recipes.push({ topic, title, code: block('ts'), query: block('svc'), sql: block('sql') })
  }
  return recipes
}
