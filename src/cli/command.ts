/** A command with examples, which are shown in its help and in docs/reference/cli.md. */
import { Command } from 'commander'
import { styled } from './style.ts'

/** A command line and its effect. */
export type Example = readonly [command: string, meaning: string]

export class SvcCommand extends Command {
  declare readonly commands: readonly SvcCommand[]
  #examples: readonly Example[] = []

  /** Creates subcommands of the same class. */
  override createCommand(name?: string): SvcCommand {
    return new SvcCommand(name)
  }

  examples(...examples: readonly Example[]): this {
    this.#examples = examples
    const lines = examples.map(([command, meaning]) => `  ${command}\n      ${meaning}`)
    return this.addHelpText('after', `\n${helpTitle('Examples:')}\n${lines.join('\n')}\n`)
  }

  get listedExamples(): readonly Example[] {
    return this.#examples
  }
}

/** A title of a help text. Commander removes the style where the output shows none. */
export function helpTitle(text: string): string {
  return styled('bold', text, { hasColors: true })
}
