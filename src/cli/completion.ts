/** `svc completion`: scripts for shells that complete commands and options, made from the commands. */
import type { SvcCommand } from './command.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** A command, or the program itself, and what can follow it. */
interface Node {
  /** The names after `svc`; empty for the program. */
  readonly path: readonly string[]
  readonly commands: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly { readonly flags: readonly string[]; readonly description: string }[]
}

export function printCompletion(shell: Shell, program: SvcCommand): string {
  const nodes = nodesOf(program, [])
  return PRINTERS[shell](nodes).join('\n')
}

function nodesOf(command: SvcCommand, path: readonly string[]): readonly Node[] {
  const node: Node = {
    path,
    commands: command.commands.map(below => ({ name: below.name(), description: sentenceOf(below.description()) })),
    options: command.options.map(({ short, long, description }) => ({
      flags: [short, long].filter(flag => flag !== undefined),
      description: sentenceOf(description),
    })),
  }
  return [node, ...command.commands.flatMap(below => nodesOf(below, [...path, below.name()]))]
}

/** The first sentence, in one line, without the characters that have a meaning between single quotes. */
function sentenceOf(text: string): string {
  const [first = ''] = text.split(/(?<=\.)\s/)
  return first.replace(/[\s]+/g, ' ').replace(/['\\]/g, '')
}

/* The variables below are those of the shells. */
const PRINTERS: Readonly<Record<Shell, (nodes: readonly Node[]) => readonly string[]>> = {
  bash: nodes => [
    '# bash completion of svc; source it, or save it as /etc/bash_completion.d/svc',
    '_svc() {',
    '  local current="$2" chain= word words',
    ...chainLines('"$' + '{COMP_WORDS[@]:1:COMP_CWORD-1}"', nodes),
    '  case "$chain" in',
    ...nodes.map(node => `    "${node.path.join(' ')}") words="${wordsOf(node).join(' ')}" ;;`),
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    '  if [ "$' + '{#COMPREPLY[@]}" -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi',
    '}',
    'complete -o filenames -F _svc svc',
  ],
  zsh: nodes => [
    '#compdef svc',
    '# zsh completion of svc; save it as _svc in a folder of $fpath',
    '_svc() {',
    '  local chain= word',
    '  local -a found',
    ...chainLines('"$' + '{(@)words[2,CURRENT-1]}"', nodes),
    '  case "$chain" in',
    ...nodes.map(node => `    "${node.path.join(' ')}") found=(${describedOf(node).join(' ')}) ;;`),
    '  esac',
    '  _describe svc found || _files',
    '}',
    'compdef _svc svc',
  ],
  fish: nodes => [
    '# fish completion of svc; save it as ~/.config/fish/completions/svc.fish',
    ...nodes.flatMap(({ path, commands, options }) => {
      const condition = conditionOf(path, commands)
      return [
        ...commands.map(
          ({ name, description }) => `complete -c svc -f -n '${condition}' -a ${name} -d '${description}'`,
        ),
        ...options.map(({ flags, description }) => {
          const names = flags.map(flag => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
          return `complete -c svc -n '${condition}' ${names.join(' ')} -d '${description}'`
        }),
      ]
    }),
  ],
}

/** Sets `chain` to the longest command among the words before the cursor. */
function chainLines(words: string, nodes: readonly Node[]): readonly string[] {
  const chains = nodes.flatMap(({ path }) => (path.length === 0 ? [] : [`"${path.join(' ')}"`]))
  const next = '$' + '{chain:+$chain }$word'
  return [
    `  for word in ${words}; do`,
    `    case "${next}" in`,
    `      ${chains.join('|')}) chain="${next}" ;;`,
    '    esac',
    '  done',
  ]
}

function wordsOf({ commands, options }: Node): readonly string[] {
  return [...commands.map(({ name }) => name), ...options.flatMap(({ flags }) => flags)]
}

/** Pairs as `_describe` of zsh takes them. */
function describedOf({ commands, options }: Node): readonly string[] {
  const flags = options.flatMap(({ flags, description }) => flags.map(name => ({ name, description })))
  return [...commands, ...flags].map(({ name, description }) => `'${name}:${description}'`)
}

function conditionOf(path: readonly string[], commands: Node['commands']): string {
  const seen = path.map(name => `__fish_seen_subcommand_from ${name}`)
  if (commands.length === 0) return seen.join('; and ')
  const below = `not __fish_seen_subcommand_from ${commands.map(({ name }) => name).join(' ')}`
  return [...seen, below].join('; and ')
}
