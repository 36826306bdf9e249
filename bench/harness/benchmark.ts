/** The definition of a benchmark: lanes that are measured in turn, and targets for their figures. */
import type { Tool } from './tools.ts'
import type { World } from './world.ts'

export interface Benchmark {
  /** The name for `npm run bench -- <name>`. */
  readonly name: string
  /** A description for people. */
  readonly title: string
  /** Programs that must be installed. */
  readonly tools: readonly Tool[]
  readonly checks: readonly Check[]
  /** The number of rounds for lanes that repeat their work themselves. */
  readonly roundsMax?: number
  /** Creates and warms up the lanes. The environment closes them. */
  prepare(world: World): Promise<readonly Lane[]>
}

/** One contestant. The lanes of a benchmark are measured one after the other, round by round. */
export interface Lane {
  readonly name: string
  /** One measurement of some seconds. Throws if any request failed, because a fast error is not a result. */
  measure(): Promise<Figures>
}

/** Figures by unit, such as `{'/s': 31200, ms: 1.02}`. */
export type Figures = Readonly<Record<string, number>>

/** The results of a load generator. */
export interface Loaded {
  readonly figures: Figures
  /** The number of successful requests. */
  readonly requests: number
}

export type Check = Ratio | Limit

/** A figure of one lane compared with the best of other lanes, measured in the same round. */
export interface Ratio {
  readonly kind: 'ratio'
  readonly unit: string
  readonly lane: string
  readonly references: readonly string[]
  readonly better: 'higher' | 'lower'
  /** The minimum if higher is better, the maximum if lower is better; null for information only. */
  readonly target: number | null
}

/** A figure that must not be exceeded on any machine. */
export interface Limit {
  readonly kind: 'limit'
  readonly unit: string
  readonly lane: string
  readonly atMost: number
}
