/** Copies of a table that the client library keeps, for a model test: in a process and in a page. */
import { createClient, type Where } from '../../src/client/index.ts'
import type { SocketConstructor } from '../../src/client/platform.ts'

export interface Thing {
  readonly id: number
  readonly tenant: string
  readonly word: string
  readonly n: number
}

/** A copy to keep: the rows of a tenant that meet a condition. */
export interface Followed {
  readonly tenantId: string
  readonly token: string
  readonly where: Where<Thing> | null
}

/** The state of a copy. */
export interface Copied {
  readonly rows: readonly Thing[]
  /** Rows of another tenant that were ever part of it. */
  readonly leaks: readonly Thing[]
}

/** Begins the copies. The returned function reports them. */
export function follow(url: string, all: readonly Followed[], WebSocket?: SocketConstructor): () => readonly Copied[] {
  const copies = all.map(({ tenantId, token, where }) => {
    let rows: ReadonlyMap<string, Thing> = new Map()
    const leaks: Thing[] = []
    const client = createClient({ url, token, ...(WebSocket === undefined ? {} : { WebSocket }) })
    const table = client.from('things')
    ;(where === null ? table : table.where(where)).follow({
      onChange(now) {
        rows = now as ReadonlyMap<string, Thing>
        leaks.push(...[...rows.values()].filter(({ tenant }) => tenant !== tenantId))
      },
    })
    return (): Copied => ({ rows: [...rows.values()], leaks })
  })
  return () => copies.map(copy => copy())
}
