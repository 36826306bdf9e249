/** Shared parts of the realtime models: reproducible random numbers, and the lists to subscribe to. */

export const WORDS = ['a', 'b', 'c', 'd'] as const
export const FILTERS = ['', 'n=gt.50', 'word=in.(a,b)', 'or=(n.lt.10,word.eq.c)'] as const
export type Filter = (typeof FILTERS)[number]

/** mulberry32: small, and the same on every platform. */
export function randomOf(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

/** Whether the list with this filter contains the row. */
export function meets({ n, word }: { readonly n: number; readonly word: string }, filter: Filter): boolean {
  switch (filter) {
    case 'n=gt.50':
      return n > 50
    case 'word=in.(a,b)':
      return word === 'a' || word === 'b'
    case 'or=(n.lt.10,word.eq.c)':
      return n < 10 || word === 'c'
    default:
      return true
  }
}

export function sorted(rows: ReadonlyMap<string, unknown>): readonly unknown[] {
  return [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
}

/** The table of the rows. Each model has its own policy on it. */
export const THINGS = `create table things (id int primary key, tenant text not null, word text not null,
    n int not null check (n < 1000));
  alter table things enable row level security;
  alter table things force row level security;`
