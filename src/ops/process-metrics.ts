/**
 * Metrics of the process and Node.js. They are read on request, except for delays, which are reported, and
 * garbage collections, which are observed.
 */
import { readdir } from 'node:fs/promises'
import { constants, PerformanceObserver, performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { Durations } from './durations.ts'
import type { Sample } from './exposition.ts'
import type { CollectedSamples } from './metric-table.ts'

/** The metrics of the process. */
export interface ProcessMetrics {
  collect(): Promise<
    CollectedSamples<
      | 'startTime'
      | 'cpu'
      | 'residentMemory'
      | 'openFiles'
      | 'eventLoopLag'
      | 'eventLoopUtilization'
      | 'gcRuns'
      | 'gcTime'
      | 'heapUsed'
      | 'heapTotal'
      | 'heapLimit'
      | 'externalMemory'
    >
  >
  /** Records a delay of the event loop. */
  delayed(ms: number): void
  close(): void
}

const GC_KINDS: ReadonlyMap<number, string> = new Map([
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
])

/** An entry of type `gc` (Node.js: performance measurement APIs); Node's type definitions lack it. */
interface Collection {
  readonly duration: number
  readonly detail: { readonly kind: number }
}

/** Starts observing the process. */
export function createProcessMetrics(): ProcessMetrics {
  const lag = new Durations()
  const collections = new Map([...GC_KINDS.values()].map(kind => [kind, { runs: 0, ms: 0 }]))
  const observer = new PerformanceObserver(list => {
    for (const { detail, duration } of list.getEntries() as readonly unknown[] as readonly Collection[]) {
      const seen = collections.get(GC_KINDS.get(detail.kind) ?? '')
      if (seen === undefined) continue
      seen.runs += 1
      seen.ms += duration
    }
  })
  observer.observe({ entryTypes: ['gc'] })

  return {
    async collect() {
      const { user, system } = process.cpuUsage()
      const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
      const gc = [...collections]
      return {
        startTime: one(performance.timeOrigin / 1_000),
        cpu: one((user + system) / 1e6),
        residentMemory: one(rss),
        openFiles: await openFiles(),
        eventLoopLag: [{ labels: [], value: lag.buckets() }],
        eventLoopUtilization: one(performance.eventLoopUtilization().active / 1_000),
        gcRuns: gc.map(([kind, { runs }]) => ({ labels: [kind], value: runs })),
        gcTime: gc.map(([kind, { ms }]) => ({ labels: [kind], value: ms / 1_000 })),
        heapUsed: one(heapUsed),
        heapTotal: one(heapTotal),
        heapLimit: one(getHeapStatistics().heap_size_limit),
        externalMemory: one(external),
      }
    },
    delayed: ms => lag.record(ms / 1_000, performance.now()),
    close: () => observer.disconnect(),
  }
}

/** Counts open files; one of those listed is used by the listing itself. */
async function openFiles(): Promise<readonly Sample[]> {
  try {
    return one((await readdir('/proc/self/fd')).length - 1)
  } catch {
    // Other systems have no such folder, and a process without a free descriptor cannot list it.
    return []
  }
}

function one(value: number): readonly Sample[] {
  return [{ labels: [], value }]
}
