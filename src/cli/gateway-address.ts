/** The address of the running gateway that a command connects to. */
import type { Bind, Config } from '../config/config.ts'
import { UsageError } from './failure.ts'

/** `url` is the address that the user gave; without one, that of the configuration is used. */
export function gatewayAddress(url: string | undefined, config: Pick<Config, 'gateway'>): URL {
  return parseAddress(url ?? boundAddress(config))
}

/** The URL of a gateway, as a user writes it. */
export function parseAddress(text: string): URL {
  if (!URL.canParse(text) || !/^https?:/i.test(text))
    throw new UsageError(`"${text}" is not a URL; use --url http://127.0.0.1:8080`)
  return new URL(text)
}

/** If the gateway listens on all interfaces, loopback is used. */
function boundAddress({ gateway: { bind } }: Pick<Config, 'gateway'>): string {
  const hosts: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
  const { host, port }: Bind = { ...bind, host: hosts[bind.host] ?? bind.host }
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
