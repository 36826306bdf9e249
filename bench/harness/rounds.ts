/** Measures lanes in interleaved rounds, so that other load on the machine affects all of them. */
import type { Benchmark, Figures, Lane } from './benchmark.ts'
import type { World } from './world.ts'

export interface Measured {
  readonly benchmark: Benchmark
  /** For each lane, one entry per round; entries with the same index belong to the same round. */
  readonly lanes: ReadonlyMap<string, readonly Figures[]>
}

export interface RoundsOptions {
  readonly rounds: number
  print(line: string): void
}

/** Runs all benchmarks round by round. Every second round is backwards, so that no lane is always first. */
export async function runRounds(
  benchmarks: readonly Benchmark[],
  world: World,
  options: RoundsOptions,
): Promise<readonly Measured[]> {
  const { rounds, print } = options
  const prepared: { benchmark: Benchmark; lanes: readonly Lane[]; figures: Map<string, Figures[]> }[] = []
  for (const benchmark of benchmarks) {
    print(`Preparing ${benchmark.name} …`)
    const lanes = await benchmark.prepare(world)
    prepared.push({ benchmark, lanes, figures: new Map(lanes.map(({ name }) => [name, []])) })
  }
  for (let round = 1; round <= rounds; round++) {
    for (const { benchmark, lanes, figures } of prepared) {
      if (round > (benchmark.roundsMax ?? rounds)) continue
      for (const lane of round % 2 === 1 ? lanes : lanes.toReversed()) {
        const measured = await lane.measure()
        figures.get(lane.name)?.push(measured)
        print(`round ${round}/${rounds}  ${benchmark.name}  ${lane.name}  ${printFigures(measured)}`)
      }
    }
  }
  return prepared.map(({ benchmark, figures }) => ({ benchmark, lanes: figures }))
}

function printFigures(figures: Figures): string {
  return Object.entries(figures)
    .map(([unit, value]) => `${Number(value.toPrecision(4))} ${unit}`)
    .join(', ')
}
