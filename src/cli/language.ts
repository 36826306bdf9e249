/** `svc parse | format | transpile`: the query language without a database (decisions 1). */
import { format, formatStatement } from '../language/format.ts'
import { type ParameterMode, printSql, type Sql } from '../language/index.ts'
import { type Parsed, parseMany } from '../language/parse.ts'
import { QuerySyntaxError } from '../language/syntax-error.ts'
import { readText, type SourceText, writeText } from './text-file.ts'
import { EXIT, type World } from './world.ts'

export interface LanguageCommand {
  readonly file: string | undefined
  /** The objects that the tools of the tool server answer, one for each statement. */
  readonly json: boolean
  /** `all` lifts literals out of the SQL. */
  readonly parameters: ParameterMode
}

export interface FormatCommand {
  readonly files: readonly string[]
  readonly json: boolean
  /** `check`: only say which texts are not in canonical form. `write`: put the files into it. */
  readonly mode: 'print' | 'check' | 'write'
}

/** The tree of each statement as JSON. */
export async function parse(command: LanguageCommand, world: World): Promise<number> {
  return each(command.file, world, (parsed, { length }) => {
    if (!command.json) return printJson(parsed.statement)
    const { text, parameters } = sqlOf(parsed, command.parameters)
    const formatted = formatStatement(parsed.statement)
    return printTool({ ok: true, ast: parsed.statement, formatted, sql: text, parameters }, length)
  })
}

/** The SQL of each statement. */
export async function transpile(command: LanguageCommand, world: World): Promise<number> {
  return each(command.file, world, (parsed, { length }) => {
    const { text, parameters } = sqlOf(parsed, command.parameters)
    return command.json ? printTool({ ok: true, sql: text, parameters }, length) : `${text};`
  })
}

/** The canonical text. */
export async function formatFiles({ files, json, mode }: FormatCommand, world: World): Promise<number> {
  let code: number = EXIT.ok
  for (const file of files.length === 0 ? [undefined] : files) {
    const source = await readText(file, world)
    const formatted = told(source, world, () => format(source.text))
    if (formatted === null) {
      code = EXIT.failed
      continue
    }
    const text = formatted.endsWith('\n') ? formatted : `${formatted}\n`
    if (mode === 'print') world.out(json ? JSON.stringify({ ok: true, formatted }) : formatted)
    else if (text === source.text) continue
    else if (mode === 'check') {
      world.error(`${source.name} is not formatted; svc format --write puts it right`)
      code = EXIT.failed
    } else if (file === undefined || file === '-') world.out(formatted)
    else await writeText(file, text, world)
  }
  return code
}

async function each(
  file: string | undefined,
  world: World,
  print: (parsed: Parsed, all: readonly Parsed[]) => string,
): Promise<number> {
  const source = await readText(file, world)
  const lines = told(source, world, () => parseMany(source.text).map((parsed, _, all) => print(parsed, all)))
  for (const line of lines ?? []) world.out(line)
  return lines === null ? EXIT.failed : EXIT.ok
}

/** A text that cannot be understood goes to standard error, with its place; null then. */
function told<T>(source: SourceText, world: World, work: () => T): T | null {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Error) || !('span' in error)) throw error
    world.error(
      `${source.name}${error instanceof QuerySyntaxError ? `:${error.line}:${error.column}` : ''}: ${error.message}`,
    )
    return null
  }
}

function sqlOf({ statement }: Parsed, parameters: ParameterMode): Sql {
  return printSql(statement, { parameters })
}

function printJson(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** Of several statements each is a line, so that they can be told apart. */
function printTool(value: unknown, statements: number): string {
  return statements === 1 ? printJson(value) : JSON.stringify(value)
}
