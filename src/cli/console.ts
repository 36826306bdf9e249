/** `svc console`: opens the console of a running gateway in the browser. */
import { spawn } from 'node:child_process'
import type { Environment } from '../config/expand.ts'
import { loadConfig } from '../config/load.ts'
import { gatewayAddress } from './gateway-address.ts'
import { EXIT, type World } from './world.ts'

export interface ConsoleCommand {
  readonly config: string | undefined
  /** The URL of the gateway; undefined for the address in the configuration. */
  readonly url: string | undefined
  /** False to print the address only. */
  readonly opens: boolean
}

/** A local gateway answers at once; another one may be far away. */
const TIMEOUT_MS = 10_000

/** Prints the address, which needs no browser on this machine. */
export async function openConsole(command: ConsoleCommand, world: World): Promise<number> {
  const base = gatewayAddress(command.url, loadConfig({ ...world, file: command.config }).config)
  const address = addressBelow(base, 'console')
  const obstacle = await obstacleTo(base)
  if (obstacle !== null) {
    world.error(obstacle)
    return EXIT.failed
  }
  world.out(address.href)
  if (!command.opens || (await isOpened(address.href, world.environment))) return EXIT.ok
  world.error('no browser could be opened; open the address above')
  return EXIT.failed
}

/** The gateway can have a path, behind a proxy. */
function addressBelow(base: URL, path: string): URL {
  return new URL(path, base.pathname.endsWith('/') ? base : new URL(`${base.pathname}/`, base))
}

/** Why there is no console at this gateway; null if there is one. */
async function obstacleTo(base: URL): Promise<string | null> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const response = await fetch(addressBelow(base, 'front/state'), { redirect: 'error', signal })
    const state = response.ok ? ((await response.json()) as { readonly hasConsole?: unknown }) : {}
    if (state.hasConsole === true) return null
    return `the gateway at ${base.origin} serves no console; set enabled = true below [gateway.console]`
  } catch (error) {
    const { cause } = error as Error
    const reason = cause instanceof Error ? cause.message : (error as Error).message
    return `no gateway responds at ${base.origin}: ${reason}; start it with svc serve, or give its address with --url`
  }
}

/** Starts the program that opens addresses: `BROWSER`, or that of the system. */
function isOpened(address: string, { BROWSER }: Environment): Promise<boolean> {
  const [program, ...before] = BROWSER === undefined || BROWSER === '' ? openerOf(process.platform) : [BROWSER]
  if (program === undefined) return Promise.resolve(false)
  return new Promise(resolve => {
    const child = spawn(program, [...before, address], { stdio: 'ignore', detached: true })
    child.once('error', () => resolve(false))
    child.once('spawn', () => {
      child.unref()
      resolve(true)
    })
  })
}

function openerOf(platform: NodeJS.Platform): readonly string[] {
  if (platform === 'darwin') return ['open']
  return platform === 'win32' ? ['rundll32', 'url.dll,FileProtocolHandler'] : ['xdg-open']
}
