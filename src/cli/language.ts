/** `svc parse | format | transpile | explain`: the query language without a database (decisions 1). */
import { answerExplain, answerFormat, answerParse, answerTranspile } from '../language/answer.ts'
import { withHabit } from '../language/foreign.ts'
import { type Parsed, parseMany } from '../language/parse.ts'
import type { ParameterMode } from '../language/printer.ts'
import { QuerySyntaxError } from '../language/syntax-error.ts'
import { explanationLines } from './explanation.ts'
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
  return each(command.file, world, ({ statement }, { length }) =>
    command.json ? printTool(answerParse(statement, command.parameters), length) : printJson(statement),
  )
}

/** The SQL of each statement. */
export async function transpile(command: LanguageCommand, world: World): Promise<number> {
  return each(command.file, world, ({ statement }, { length }) => {
    const answer = answerTranspile(statement, command.parameters)
    return command.json ? printTool(answer, length) : `${answer.sql};`
  })
}

/** What each statement does, part by part. */
export async function explain({ file, json }: Omit<LanguageCommand, 'parameters'>, world: World): Promise<number> {
  return each(file, world, ({ statement }, all) => {
    const answer = answerExplain(statement)
    if (json) return printTool(answer, all.length)
    // An empty line between the blocks of several.
    return `${explanationLines(answer)}${statement === all.at(-1)?.statement ? '' : '\n'}`
  })
}

/** The canonical text. */
export async function formatFiles({ files, json, mode }: FormatCommand, world: World): Promise<number> {
  let code: number = EXIT.ok
  for (const file of files.length === 0 ? [undefined] : files) {
    const source = await readText(file, world)
    const answer = told(source, world, () => answerFormat(source.text))
    if (answer === null) {
      code = EXIT.failed
      continue
    }
    const { formatted } = answer
    const text = formatted === '' || formatted.endsWith('\n') ? formatted : `${formatted}\n`
    if (mode === 'print') world.out(json ? JSON.stringify(answer) : formatted)
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
    const shown = error instanceof QuerySyntaxError ? withHabit(error, source.text) : error
    const place = shown instanceof QuerySyntaxError ? `:${shown.line}:${shown.column}` : ''
    world.error(`${source.name}${place}: ${shown.message}`)
    return null
  }
}

function printJson(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** Of several statements each is a line, so that they can be told apart. */
function printTool(value: unknown, statements: number): string {
  return statements === 1 ? printJson(value) : JSON.stringify(value)
}
