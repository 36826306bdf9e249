/** The address of the running gateway that a command connects to. */
import type { Bind, Config } from '../config/config.ts'
import { UsageError } from './failure.ts'

/** `url` is the address that the user gave; without one, that of the configuration is used. */
export function gatewayAddress(url: string | undefined, config: Pick<Config, 'gateway'>): URL {
  const base = url ?? boundAddress(config)
  if (!URL.canParse(base)) throw new UsageError(`"${base}" is not a URL; use --url http://127.0.0.1:8080`)
  return new URL(base)
}

/** If the gateway listens on all interfaces, loopback is used. */
function boundAddress({ gateway: { bind } }: Pick<Config, 'gateway'>): string {
  const hosts: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  const { host, port }: Bind = { ...bind, host: hosts[bind.host] ?? bind.host }
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
