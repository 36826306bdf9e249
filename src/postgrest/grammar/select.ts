/** The `select` parameter: columns, casts, aggregates and embedded relations, at any depth. */
import {
  ahead,
  attempt,
  chain,
  character,
  either,
  end,
  give,
  inside,
  mapResult,
  option,
  separated,
  sequence,
  type TextParser,
  unlessNext,
  word,
} from './combinators.ts'
import { type FieldPath, fieldName, fieldPath, identifier, lexeme, recursive, valueFor } from './names.ts'

/** An aggregate function. */
export type Aggregate = 'avg' | 'count' | 'max' | 'min' | 'sum'

/** A column, or `*`. */
export interface SelectedField {
  readonly kind: 'field'
  /** The name `*` means all columns. */
  readonly field: FieldPath
  readonly alias: string | null
  readonly cast: string | null
  /** With its cast after the aggregate; the column is empty for `count()`. */
  readonly aggregate: { readonly name: Aggregate; readonly cast: string | null } | null
}

/** An embedded relation. */
export interface SelectedRelation {
  readonly kind: 'relation'
  readonly name: string
  readonly alias: string | null
  /** A foreign key, a column, or a junction table; null for none. */
  readonly hint: string | null
  readonly join: 'inner' | 'left' | null
  /** Its columns become columns of the row around it. */
  readonly isSpread: boolean
  readonly select: Selection
}

/** The members of one level. */
export type Selection = readonly (SelectedField | SelectedRelation)[]

const alias: TextParser<string> = mapResult(
  sequence(
    fieldName,
    character(':'),
    unlessNext(found => found === ':'),
  ),
  ([name]) => name,
)

const optionalAlias: TextParser<string | null> = option(null, attempt(alias))

type EmbedParameter = { readonly join: 'inner' | 'left' } | { readonly hint: string }

const embedParameter: TextParser<EmbedParameter> = mapResult(
  sequence(
    character('!'),
    either<EmbedParameter>(
      valueFor({ join: 'left' }, attempt(word('left'))),
      valueFor({ join: 'inner' }, attempt(word('inner'))),
      mapResult(attempt(fieldName), hint => ({ hint })),
    ),
  ),
  ([, parameter]) => parameter,
)

const embedParameters: TextParser<Pick<SelectedRelation, 'hint' | 'join'>> = mapResult(
  sequence(option(null, embedParameter), option(null, embedParameter)),
  parameters => {
    const given = parameters.flatMap(parameter => parameter ?? [])
    const hints = given.flatMap(parameter => ('hint' in parameter ? [parameter.hint] : []))
    const joins = given.flatMap(parameter => ('join' in parameter ? [parameter.join] : []))
    return { hint: hints[0] ?? null, join: joins[0] ?? null }
  },
)

const beforeParenthesis: TextParser<null> = attempt(ahead(word('(')))

const spread: TextParser<Omit<SelectedRelation, 'select'>> = lexeme(
  attempt(
    mapResult(sequence(word('...'), fieldName, embedParameters, beforeParenthesis), ([, name, parameters]) => ({
      ...({ kind: 'relation', name, alias: null, isSpread: true } as const),
      ...parameters,
    })),
  ),
)

/** `count()` is an aggregate and never a relation. */
const relationName: TextParser<string> = chain(fieldName, name => (name === 'count' ? never : give(name)))

const never: TextParser<never> = (_, at) => ({ at, consumed: false, failure: { at, messages: [] } })

const relation: TextParser<Omit<SelectedRelation, 'select'>> = lexeme(
  attempt(
    mapResult(
      sequence(optionalAlias, relationName, embedParameters, beforeParenthesis),
      ([name, table, parameters]) => ({
        ...({ kind: 'relation', name: table, alias: name, isSpread: false } as const),
        ...parameters,
      }),
    ),
  ),
)

const aggregateName: TextParser<Aggregate> = either<Aggregate>(
  valueFor('sum', attempt(word('sum()'))),
  valueFor('avg', attempt(word('avg()'))),
  valueFor('count', attempt(word('count()'))),
  valueFor('max', attempt(word('max()'))),
  valueFor('min', attempt(word('min()'))),
)

const castTo: TextParser<string> = mapResult(sequence(word('::'), identifier), ([, type]) => type)

const endOfField: TextParser<null> = either(attempt(ahead(word(')'))), attempt(ahead(word(','))), attempt(end))

/** `count()` without a column counts rows. */
const rowCount: TextParser<SelectedField> = attempt(
  mapResult(sequence(optionalAlias, word('count()'), option(null, castTo), endOfField), ([name, , cast]) => ({
    ...({ kind: 'field', field: { name: '*', steps: [] }, alias: name, cast: null } as const),
    aggregate: { name: 'count', cast },
  })),
)

const aggregated: TextParser<SelectedField['aggregate']> = mapResult(
  sequence(character('.'), aggregateName, option(null, castTo)),
  ([, name, cast]) => ({ name, cast }),
)

const column: TextParser<SelectedField> = mapResult(
  sequence(optionalAlias, fieldPath, option(null, castTo), option(null, aggregated), endOfField),
  ([name, path, cast, aggregate]) => ({ kind: 'field', field: path, alias: name, cast, aggregate }),
)

const star: TextParser<SelectedField> = mapResult(sequence(word('*'), endOfField), () => ({
  ...({ kind: 'field', field: { name: '*', steps: [] }, alias: null, cast: null, aggregate: null } as const),
}))

const selected: TextParser<SelectedField> = lexeme(either(attempt(star), rowCount, column))

function embedded(head: TextParser<Omit<SelectedRelation, 'select'>>): TextParser<SelectedRelation> {
  const none: TextParser<Selection> = mapResult(ahead(word(')')), () => [])
  const members = either(
    attempt(none),
    recursive(() => selection),
  )
  return mapResult(sequence(head, inside(character('('), members, character(')'))), ([of, select]) => ({
    ...of,
    select,
  }))
}

const member: TextParser<SelectedField | SelectedRelation> = either<SelectedField | SelectedRelation>(
  embedded(spread),
  embedded(relation),
  selected,
)

/** One level of `select`. */
export const selection: TextParser<Selection> = separated(member, lexeme(character(',')))
