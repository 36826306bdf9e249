/**
 * `svc mcp`: runs the tool server, over HTTP until a signal stops it, or over standard input until that ends.
 */
import { randomBytes } from 'node:crypto'
import { loadConfig } from '../config/load.ts'
import { type Answerer, createAnswerer } from '../mcp/answer.ts'
import { RATE_LIMIT, startToolServer } from '../mcp/http.ts'
import { loadLibrary } from '../mcp/library/load.ts'
import { answerLines } from '../mcp/stdio.ts'
import { parseBind } from './bind.ts'
import { printFailure, UsageError } from './failure.ts'
import { runUntilSignal } from './signals.ts'
import { EXIT, type World } from './world.ts'

export interface McpCommand {
  readonly file: string | undefined
  /** `HOST:PORT`; null for the configured address. */
  readonly bind: string | null
  readonly stdio: boolean
}

export async function mcp(command: McpCommand, world: World): Promise<number> {
  if (command.stdio && command.bind !== null)
    throw new UsageError('--stdio does not listen on an address; remove --bind')
  const answerer = createAnswerer({
    library: loadLibrary(),
    report: error => world.error(printFailure(error)),
  })
  if (command.stdio) {
    const { input, output } = world.stdio()
    await answerLines(input, output, answerer)
  } else await serve(command, answerer, world)
  return EXIT.ok
}

async function serve({ file, bind }: McpCommand, answerer: Answerer, world: World): Promise<void> {
  const { mcp, gateway } = loadConfig({ ...world, file }).config
  const { host, port } = bind === null ? mcp.bind : parseBind(bind)
  const start = async () => {
    const server = await startToolServer({
      ...{ host, port, answerer, allowedHosts: mcp.allowedHosts, trustedProxies: gateway.trustedProxies },
      rateLimit: RATE_LIMIT,
      now: () => performance.now(),
      seed: randomBytes(4).readUInt32LE(),
    })
    world.out(`The tool server listens at ${server.url}`)
    return server
  }
  await runUntilSignal(start, world.signals, world.error)
}
