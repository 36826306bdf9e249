/** Names, options and help of the subcommands of `svc token`. */
import { InvalidArgumentError } from 'commander'
import type { SvcCommand } from './command.ts'
import { CONFIG } from './help.ts'
import type { World } from './world.ts'

type Finish = (code: number) => void

export function addTokenCommands(token: SvcCommand, world: World, finish: Finish): void {
  token
    .command('verify')
    .description(
      'Explain step by step whether the gateway of this configuration accepts a token, and which session settings ' +
        'result. Reads jwt_denylist_table when a database is configured. Exit code 0 when it is accepted, 1 when it ' +
        'is refused, 2 when its provider cannot be reached.',
    )
    .argument('<token>', 'as it is sent, without "Bearer"')
    .option(...CONFIG)
    .examples(
      ['svc token verify "$TOKEN"', 'with ./svc.toml'],
      ['svc token verify --config svc.toml "$(cat token)"', 'of a file'],
    )
    .action(async (text: string, options: { readonly config?: string }, command: SvcCommand) => {
      const { verify } = await import('./token-verify.ts')
      finish(await verify({ file: options.config ?? command.parent?.opts().config, token: text }, world))
    })

  token
    .command('revoke')
    .description(
      'Revoke tokens. Writes a row into jwt_denylist_table, as the role of SVC_ADMIN_DATABASE_URL if it is set, ' +
        'else as the role of the gateway. Every gateway rejects the tokens and closes their sockets within 10 seconds.',
    )
    .option('--jti <id>', 'the token with this claim jti')
    .option('--sub <subject>', 'the tokens of this subject')
    .option('--before <time>', 'only those issued before this time, ISO 8601 with a zone (else now)', parseTime)
    .option(...CONFIG)
    .examples(
      ['svc token revoke --jti 4f1c…', 'one token'],
      ['svc token revoke --sub auth0|5f7c8ec7', 'all tokens of a user that were issued until now'],
      ['svc token revoke --sub ann --before 2026-01-31T12:00:00Z', 'those issued before'],
    )
    .action(async (options: RevokeOptions, command: SvcCommand) => {
      const { revoke } = await import('./token-revoke.ts')
      const { jti, sub, before, config = command.parent?.opts().config } = options
      finish(await revoke({ file: config, jti, sub, before }, world))
    })
}

interface RevokeOptions {
  readonly config?: string
  readonly jti?: string
  readonly sub?: string
  readonly before?: Date
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)$/

function parseTime(text: string): Date {
  const time = TIME.test(text) ? new Date(text) : null
  if (time === null || Number.isNaN(time.getTime())) {
    throw new InvalidArgumentError('Expected a time with its zone, such as 2026-01-31T12:00:00Z.')
  }
  return time
}
