/** Names, options and help of the commands about webhooks. */
import type { SvcCommand } from './command.ts'
import { CONFIG } from './help.ts'
import type { WebhooksCommand } from './webhooks.ts'
import type { World } from './world.ts'

type Finish = (code: number) => void

interface Options {
  readonly config?: string
  readonly url?: string
  readonly json?: true
  readonly all?: true
}

const ID = ['[id]', 'of a dead letter, as svc webhooks list shows it'] as const
const ALL = ['--all', 'all dead letters'] as const

export function addWebhookCommands(program: SvcCommand, world: World, finish: Finish): void {
  const webhooks = program
    .command('webhooks')
    .description(
      'Look at the webhooks of a running gateway, and deal with those that failed. It needs the admin token.',
    )
    .examples(['SVC_ADMIN_TOKEN=… svc webhooks list', 'how it goes'], ['svc webhooks redeliver --all', 'try again'])

  const command = (name: string, description: string): SvcCommand =>
    webhooks
      .command(name)
      .description(description)
      .option(...CONFIG)
      .option('--url <url>', 'where the gateway is (else where the configuration has it listen)')
      .option('--json', 'the answer as JSON')

  command(
    'list',
    'Print the triggers with what waits of each in the database, what is on its way, and the newest dead letters.',
  )
    .option('--before <id>', 'dead letters that were given up before this one')
    .examples(['svc webhooks list', 'how it goes'], ['svc webhooks list --json', 'for programs'])
    .action(async (options: Options & { readonly before?: string }) => {
      const { list } = await import('./webhooks.ts')
      finish(await list(options.before, asked(options), world))
    })

  command('show', 'Print a dead letter: why it was given up, the last answer, what was sent, and its tries.')
    .argument('<id>', 'of a dead letter, or the webhook-id of what was tried in the last week')
    .examples(['svc webhooks show msg_2jAB…', 'as JSON'])
    .action(async (id: string, options: Options) => {
      const { show } = await import('./webhooks.ts')
      finish(await show(id, asked(options), world))
    })

  command('redeliver', 'Send dead letters again, as if they were new, with the id that they had.')
    .argument(...ID)
    .option(...ALL)
    .examples(
      ['svc webhooks redeliver msg_2jAB…', 'one'],
      ['svc webhooks redeliver --all', 'once the receiver is mended'],
    )
    .action(async (id: string | undefined, options: Options) => {
      const { redeliver } = await import('./webhooks.ts')
      finish(await redeliver({ id, all: options.all === true }, asked(options), world))
    })

  command('purge', 'Throw dead letters away.')
    .argument(...ID)
    .option(...ALL)
    .examples(['svc webhooks purge msg_2jAB…', 'one'], ['svc webhooks purge --all', 'all'])
    .action(async (id: string | undefined, options: Options) => {
      const { purge } = await import('./webhooks.ts')
      finish(await purge({ id, all: options.all === true }, asked(options), world))
    })

  command('test', 'Send a webhook with the operation TEST and without rows, once; exit code 1 when it does not arrive.')
    .argument('<trigger>', 'name of a trigger')
    .examples(['svc webhooks test order-paid', 'signed and guarded as real ones are'])
    .action(async (trigger: string, options: Options) => {
      const { test } = await import('./webhooks.ts')
      finish(await test(trigger, asked(options), world))
    })
}

function asked({ config, url, json }: Options): WebhooksCommand {
  return { config, url, json: json === true }
}
