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

const ID = ['[id]', 'id of a dead letter, from svc webhooks list'] as const
const ALL = ['--all', 'all dead letters'] as const

export function addWebhookCommands(program: SvcCommand, world: World, finish: Finish): void {
  const webhooks = program
    .command('webhooks')
    .description('Show the webhooks of a running gateway, and handle failed deliveries. Needs the admin token.')
    .examples(
      ['SVC_ADMIN_TOKEN=… svc webhooks list', 'triggers and dead letters'],
      ['svc webhooks redeliver --all', 'send all again'],
    )

  const command = (name: string, description: string): SvcCommand =>
    webhooks
      .command(name)
      .description(description)
      .option(...CONFIG)
      .option('--url <url>', 'URL of the gateway (default: from the configuration)')
      .option('--json', 'print JSON')

  command('list', 'Print the triggers with their waiting and in-flight deliveries, and the newest dead letters.')
    .option('--before <id>', 'dead letters older than this one')
    .examples(['svc webhooks list', 'as text'], ['svc webhooks list --json', 'as JSON'])
    .action(async (options: Options & { readonly before?: string }) => {
      const { list } = await import('./webhooks.ts')
      finish(await list(options.before, commandOf(options), world))
    })

  command('show', 'Print a dead letter: the reason, the last response, the body, and its attempts.')
    .argument('<id>', 'id of a dead letter, or the webhook-id of a delivery of the last week')
    .examples(['svc webhooks show msg_2jAB…', 'as JSON'])
    .action(async (id: string, options: Options) => {
      const { show } = await import('./webhooks.ts')
      finish(await show(id, commandOf(options), world))
    })

  command('redeliver', 'Send dead letters again as new deliveries, with the same webhook-id.')
    .argument(...ID)
    .option(...ALL)
    .examples(
      ['svc webhooks redeliver msg_2jAB…', 'one'],
      ['svc webhooks redeliver --all', 'after the receiver was fixed'],
    )
    .action(async (id: string | undefined, options: Options) => {
      const { redeliver } = await import('./webhooks.ts')
      finish(await redeliver({ id, all: options.all === true }, commandOf(options), world))
    })

  command('purge', 'Delete dead letters.')
    .argument(...ID)
    .option(...ALL)
    .examples(['svc webhooks purge msg_2jAB…', 'one'], ['svc webhooks purge --all', 'all'])
    .action(async (id: string | undefined, options: Options) => {
      const { purge } = await import('./webhooks.ts')
      finish(await purge({ id, all: options.all === true }, commandOf(options), world))
    })

  command('test', 'Send one request with the operation TEST and without rows. Exit code 1 if it is not accepted.')
    .argument('<trigger>', 'name of a trigger')
    .examples(['svc webhooks test order-paid', 'signed, and checked by the address guard'])
    .action(async (trigger: string, options: Options) => {
      const { test } = await import('./webhooks.ts')
      finish(await test(trigger, commandOf(options), world))
    })
}

function commandOf({ config, url, json }: Options): WebhooksCommand {
  return { config, url, json: json === true }
}
