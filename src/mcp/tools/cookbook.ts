/** The tool that shows how queries are built in TypeScript: the recipes of the builder's guide. */
import { choiceArgument } from '../arguments.ts'
import type { Library } from '../library/library.ts'
import type { Recipe } from '../library/model.ts'
import { arrayOf, record, STRING_SCHEMA } from '../schema.ts'
import { defineTool, type Tool } from '../tool.ts'

/** The tool that shows recipes. */
export function cookbookTool({ recipes }: Library): Tool {
  const topics = [...new Set(recipes.map(({ topic }) => topic))]
  return defineTool({
    name: 'svc_builder_cookbook',
    title: 'Builder cookbook',
    description:
      'Recipes for the typed query builder of svc-gateway/language: TypeScript, the query it makes, ' +
      'and its SQL. Without a topic, the first recipe of each.',
    arguments: { topic: choiceArgument('All recipes of this topic', topics) },
    output: record({
      recipes: arrayOf(record({ title: STRING_SCHEMA, code: STRING_SCHEMA, query: STRING_SCHEMA, sql: STRING_SCHEMA })),
    }),
    run({ topic }) {
      const wanted =
        topic === null
          ? topics.flatMap(name => recipes.find(recipe => recipe.topic === name) ?? [])
          : recipes.filter(recipe => recipe.topic === topic)
      return { recipes: wanted.map(shown) }
    },
  })
}

function shown({ title, code, query, sql }: Recipe): object {
  return { title, code, query, sql }
}
