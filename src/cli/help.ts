/** What the help of several commands has in common. */

export const CONFIG = [
  '-c, --config <file>',
  'configuration file (else SVC_CONFIG, else ./svc.toml where it exists)',
] as const

export function examples(...lines: readonly (readonly [command: string, meaning: string])[]): string {
  return `\nExamples:\n${lines.map(([command, meaning]) => `  ${command}\n      ${meaning}`).join('\n')}\n`
}
