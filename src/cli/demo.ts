/** `svc demo`: runs the gateway with an embedded PostgreSQL and sample data, until a signal stops it. */
import { startDemo } from '../demo/demo.ts'
import { runUntilSignal } from './signals.ts'
import { styled } from './style.ts'
import type { World } from './world.ts'

export interface DemoCommand {
  readonly port: number | undefined
  readonly fresh: boolean
}

export function demo({ port, fresh }: DemoCommand, world: World): Promise<void> {
  const { environment, out: print } = world
  const emphasize = (text: string) => styled('bold', text, world)
  return runUntilSignal(() => startDemo({ port, fresh, environment, print, emphasize }), world.signals, world.error)
}
