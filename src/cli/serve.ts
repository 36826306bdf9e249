/** `svc serve`: the gateway, until a signal stops it. */
import { unbuiltFindings } from '../config/findings.ts'
import { loadConfig } from '../config/load.ts'
import { asErrors, printFinding } from '../ops/finding.ts'
import { runUntilSignal } from './signals.ts'
import { EXIT, type World } from './world.ts'

export interface ServeCommand {
  readonly file: string | undefined
  /** A file to write the shapes of queries to, as `svc check --record` does. */
  readonly record?: string
}

export async function serve({ file, ...options }: ServeCommand, world: World): Promise<number> {
  const loaded = loadConfig({ ...world, file })
  const { strict } = loaded.config.gateway
  // A file written for a later version must still start this one; who wants to be strict believes that every key has an effect.
  const findings = unbuiltFindings(loaded)
  for (const finding of strict ? asErrors(findings) : findings) world.error(printFinding(finding))
  if (strict && findings.length > 0) return EXIT.failed
  const { startGateway } = await import('../gateway.ts')
  await runUntilSignal(() => startGateway(loaded.config, options), world.signals, world.error)
  return EXIT.ok
}
