/**
 * `svc parse | format | transpile | explain`: the query language. Only `transpile --database` needs a
 * database.
 */
import { fillKeys, type KeyedTables } from '../access/fill-keys.ts'
import { GatewayError } from '../errors.ts'
import { answerExplain, answerFormat, answerParse, answerTranspile } from '../language/hints/answer.ts'
import { guessedJoins } from '../language/hints/guessed-joins.ts'
import { withSqlHint } from '../language/hints/sql-hints.ts'
import type { ParameterMode } from '../language/sql/printer.ts'
import { lineColumnAt } from '../language/syntax/line-column.ts'
import { type Parsed, parseMany } from '../language/syntax/parse.ts'
import { QuerySyntaxError } from '../language/syntax/syntax-error.ts'
import { LanguageError } from '../language/tree/error.ts'
import { explanationLines } from './explanation.ts'
import { readSource, type SourceText, writeText } from './text-file.ts'
import { EXIT, type World } from './world.ts'

export interface LanguageCommand {
  readonly file: string | undefined
  /** True to print the objects that the tools of the tool server return, one for each statement. */
  readonly json: boolean
  /** `all` lifts literals out of the SQL. */
  readonly parameters: ParameterMode
}

export interface TranspileCommand extends LanguageCommand {
  /** The source of foreign keys; null derives them from the names of tables. */
  readonly keys: KeysFrom | null
}

export interface KeysFrom {
  /** A schema document; undefined: the configured database. */
  readonly file: string | undefined
  readonly config: string | undefined
}

export interface FormatCommand {
  readonly files: readonly string[]
  readonly json: boolean
  /** `check`: only list the texts that are not in canonical form. `write`: rewrite the files. */
  readonly mode: 'print' | 'check' | 'write'
}

/** Prints the tree of each statement as JSON. */
export async function parseFile(command: LanguageCommand, world: World): Promise<number> {
  return each(command.file, world, ({ statement }, { length }) =>
    command.json ? printTool(answerParse(statement, command.parameters), length) : printJson(statement),
  )
}

/** Prints the SQL of each statement. Guesses are reported on standard error, or in the JSON. */
export async function transpileFile(command: TranspileCommand, world: World): Promise<number> {
  const known = command.keys === null ? null : await keyedTables(command.keys, world)
  const guessed: string[] = []
  const code = await each(command.file, world, ({ statement }, { length }, source) => {
    const keyed = known === null ? statement : fillKeys(statement, known)
    const answer = answerTranspile(keyed, command.parameters)
    if (command.json) return printTool(answer, length)
    for (const { note, span } of guessedJoins(keyed)) guessed.push(`${placed(source, span.start)}: note: ${note}`)
    return `${answer.sql};`
  })
  if (code === EXIT.ok) for (const note of guessed) world.error(note)
  return code
}

/** Loaded only on request, because most calls need no database. */
async function keyedTables({ file, config }: KeysFrom, world: World): Promise<KeyedTables> {
  const [{ documentOf, firstSchema }, { relateDocument }] = await Promise.all([
    import('./schema.ts'),
    import('../catalog/document.ts'),
  ])
  const document = await documentOf({ file, config }, world)
  return relateDocument(document, file === undefined ? firstSchema(config, world) : 'public')
}

/** Explains each statement, part by part. */
export async function explainFile({ file, json }: Omit<LanguageCommand, 'parameters'>, world: World): Promise<number> {
  return each(file, world, ({ statement }, all) => {
    const answer = answerExplain(statement)
    if (json) return printTool(answer, all.length)
    // An empty line separates the blocks of several statements.
    return `${explanationLines(answer)}${statement === all.at(-1)?.statement ? '' : '\n'}`
  })
}

/** The canonical text. */
export async function formatFiles({ files, json, mode }: FormatCommand, world: World): Promise<number> {
  let code: number = EXIT.ok
  for (const file of files.length === 0 ? [undefined] : files) {
    const source = await readSource(file, world)
    const answer = parsedOrReported(source, world, () => answerFormat(source.text))
    if (answer === null) {
      code = EXIT.failed
      continue
    }
    const { formatted } = answer
    const text = formatted === '' || formatted.endsWith('\n') ? formatted : `${formatted}\n`
    if (mode === 'print') world.out(json ? JSON.stringify(answer) : formatted)
    else if (text === source.text) continue
    else if (mode === 'check') {
      world.error(`${source.name} is not in canonical form; svc format --write rewrites it`)
      code = EXIT.failed
    } else if (file === undefined || file === '-') world.out(formatted)
    else await writeText(file, text, world)
  }
  return code
}

async function each(
  file: string | undefined,
  world: World,
  print: (parsed: Parsed, all: readonly Parsed[], source: SourceText) => string,
): Promise<number> {
  const source = await readSource(file, world)
  const lines = parsedOrReported(source, world, () =>
    parseMany(source.text).map((parsed, _, all) => print(parsed, all, source)),
  )
  for (const line of lines ?? []) world.out(line)
  return lines === null ? EXIT.failed : EXIT.ok
}

/** Reports a syntax error with its position on standard error, and returns null. */
function parsedOrReported<T>(source: SourceText, world: World, work: () => T): T | null {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Error) || !('span' in error)) throw error
    const shown = error instanceof QuerySyntaxError ? withSqlHint(error, source.text) : error
    world.error(`${placeIn(source, shown)}: ${shown.message}`)
    return null
  }
}

/** The name of the text alone if the error has no position in it. */
function placeIn(source: SourceText, error: Error): string {
  if (error instanceof QuerySyntaxError) return `${source.name}:${error.line}:${error.column}`
  const span = error instanceof LanguageError || error instanceof GatewayError ? error.span : null
  return span ? placed(source, span.start) : source.name
}

function placed({ name, text }: SourceText, offset: number): string {
  const { line, column } = lineColumnAt(text, offset)
  return `${name}:${line}:${column}`
}

function printJson(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** Prints one line per statement, so that several can be distinguished. */
function printTool(value: unknown, statements: number): string {
  return statements === 1 ? printJson(value) : JSON.stringify(value)
}
