/** `svc demo`: runs the gateway with an embedded PostgreSQL and sample data, until a signal stops it. */
import { startDemo } from '../demo/demo.ts'
import { runUntilSignal } from './signals.ts'
import type { World } from './world.ts'

export interface DemoCommand {
  readonly port: number | undefined
  readonly fresh: boolean
}

export function demo({ port, fresh }: DemoCommand, world: World): Promise<void> {
  const { environment, out: print } = world
  return runUntilSignal(() => startDemo({ port, fresh, environment, print }), world.signals, world.error)
}
