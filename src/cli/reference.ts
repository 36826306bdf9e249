/**
 * Prints `docs/reference/cli.md` from the commands. Its test compares the two, and rewrites the page with
 * `-u`.
 */
import type { Argument, Option } from 'commander'
import { markdownCell } from '../text/markdown-cell.ts'
import type { SvcCommand } from './command.ts'
import { EXIT_CODES } from './program.ts'

export function printCliReference(program: SvcCommand): string {
  return [HEAD, ...program.commands.flatMap(command => printCommand(command, 'svc', '##')), EXITS].join('\n')
}

const HEAD = `# Command line

<!-- Written from src/cli/program.ts and its neighbours by \`npx vitest run src/cli/reference.test.ts -u\`; edit the \
commands, not this page. -->

\`svc --help\` and \`svc <command> --help\` print the same information. [Configuration](configuration.md) lists the \
environment variables; they override the configuration file. Results are written to standard output, everything else \
to standard error. Colours and progress bars appear on terminals only; with \`NO_COLOR\`, there are no colours.
`

const EXITS = `## Exit codes

| Code | Meaning |
| --- | --- |
${EXIT_CODES.map(([code, meaning]) => `| ${code} | ${meaning} |`).join('\n')}
`

/** Prints a command with its subcommands: `svc schema pull` is a section of `svc schema`. */
function printCommand(command: SvcCommand, parent: string, heading: string): readonly string[] {
  const name = `${parent} ${command.name()}`
  const usage = [name, ...command.registeredArguments.map(printArgument)].join(' ')
  const rows = [...command.registeredArguments.map(argumentRow), ...command.options.map(optionRow)]
  return [
    `${heading} ${name}\n`,
    `${command.description()}\n`,
    ...(command.commands.length > 0 && rows.length === 0
      ? []
      : [`\`${usage}${command.options.length > 0 ? ' [options]' : ''}\`\n`]),
    ...(rows.length > 0
      ? [`| Option or argument | Default | Meaning |\n| --- | --- | --- |\n${rows.join('\n')}\n`]
      : []),
    `\`\`\`console\n${command.listedExamples.map(([line, meaning]) => `# ${meaning}\n$ ${line}`).join('\n')}\n\`\`\`\n`,
    ...command.commands.flatMap(below => printCommand(below, name, `${heading}#`)),
  ]
}

function printArgument(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}

function argumentRow(argument: Argument): string {
  return `| \`${printArgument(argument)}\` | | ${markdownCell(argument.description)} |`
}

function optionRow({ flags, description, defaultValue, defaultValueDescription }: Option): string {
  const value = defaultValueDescription ?? (defaultValue === undefined ? undefined : String(defaultValue))
  return `| \`${flags}\` |${value === undefined ? '' : ` \`${value}\``} | ${markdownCell(description)} |`
}
