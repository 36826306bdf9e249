/** What a benchmark is: lanes that are measured in turn, and what their figures are held to. */
import type { Tool } from './tools.ts'
import type { World } from './world.ts'

export interface Benchmark {
  /** What `npm run bench -- <name>` calls it. */
  readonly name: string
  /** What is measured, for people. */
  readonly title: string
  /** Programs that must be installed. */
  readonly tools: readonly Tool[]
  readonly checks: readonly Check[]
  /** For lanes that repeat by themselves. */
  readonly roundsMax?: number
  /** Makes and warms up what the lanes need; the world closes it. */
  prepare(world: World): Promise<readonly Lane[]>
}

/** One contestant. Lanes of a benchmark are measured one after the other, round by round. */
export interface Lane {
  readonly name: string
  /** One measurement, of some seconds. Throws if anything failed: a fast error is no result. */
  measure(): Promise<Figures>
}

/** Numbers by unit, e.g. `{'/s': 31200, ms: 1.02}`. */
export type Figures = Readonly<Record<string, number>>

/** What a load generator has done. */
export interface Loaded {
  readonly figures: Figures
  /** How many requests were answered. */
  readonly requests: number
}

export type Check = Ratio | Limit

/** A figure of one lane against the best of others, measured in the same round. */
export interface Ratio {
  readonly kind: 'ratio'
  readonly unit: string
  readonly lane: string
  readonly references: readonly string[]
  readonly better: 'higher' | 'lower'
  /** At least this where higher is better, at most this where lower is; null: only to know. */
  readonly target: number | null
}

/** A figure that must not be exceeded, whatever the machine. */
export interface Limit {
  readonly kind: 'limit'
  readonly unit: string
  readonly lane: string
  readonly atMost: number
}
