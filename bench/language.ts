/**
 * The query language on one core: text to SQL, and text to canonical text, compared with parsing the tree's
 * JSON.
 */
import { fileURLToPath } from 'node:url'
import type { Benchmark, Check, Figures, Lane } from './harness/benchmark.ts'
import { runProgram } from './harness/processes.ts'

interface Text {
  readonly name: string
  /** `#` is replaced by a number. */
  readonly text: string
}

const READ: Text = {
  name: 'read',
  text: 'get users fields id, email where active = true and age > # order by id limit 20',
}
const JOIN: Text = {
  name: 'join',
  text:
    'get users u inner join posts p on p.user_id = u.id fields u.name, p.title ' +
    'where u.active = true and p.views > # order by p.created_at desc limit 20',
}
const COMMON_TABLE: Text = {
  name: 'common table',
  text:
    "with spent as (get orders fields user_id, sum(total) as total where status = 'paid') " +
    'get users u inner join spent s on s.user_id = u.id fields u.name, s.total ' +
    'where s.total > # order by s.total desc limit 10',
}
const TEXTS: readonly Text[] = [READ, JOIN, COMMON_TABLE]

interface Contestant {
  readonly lane: string
  readonly work: 'print' | 'lift' | 'format'
  readonly text: Text
  /** Required texts per second on one core; null for information only. */
  readonly atLeast: number | null
}

const CONTESTANTS: readonly Contestant[] = [
  { lane: 'read: parse and print', work: 'print', text: READ, atLeast: 250_000 },
  { lane: 'read: parse and print, literals as parameters', work: 'lift', text: READ, atLeast: null },
  { lane: 'join: parse and print', work: 'print', text: JOIN, atLeast: 120_000 },
  { lane: 'common table: parse and print', work: 'print', text: COMMON_TABLE, atLeast: 80_000 },
  { lane: 'read: format', work: 'format', text: READ, atLeast: 100_000 },
]

export const language: Benchmark = {
  name: 'language',
  title: 'Query language, one core',
  tools: [],
  checks: CONTESTANTS.flatMap(checksOf),
  async prepare() {
    return [
      ...CONTESTANTS.map(({ lane, work, text }) => laneOf(lane, work, text)),
      ...TEXTS.map(text => laneOf(yardstick(text), 'yardstick', text)),
    ]
  },
}

function checksOf({ lane, text, atLeast }: Contestant): readonly Check[] {
  const ratio: Check = {
    ...{ kind: 'ratio', unit: '/s', lane, references: [yardstick(text)], better: 'higher', target: null },
  }
  // A minimum rate is a maximum time.
  return atLeast === null
    ? [ratio]
    : [{ kind: 'limit', unit: 'µs', lane, atMost: Math.round(1e8 / atLeast) / 100 }, ratio]
}

function yardstick({ name }: Text): string {
  return `${name}: JSON.parse of the tree`
}

const SECONDS = 2
const SCRIPT = fileURLToPath(new URL('references/language.js', import.meta.url))

/** Each measurement is a separate process, so that no lane is affected by another one's heap. */
function laneOf(name: string, work: Contestant['work'] | 'yardstick', text: Text): Lane {
  const texts = JSON.stringify(TEXTS.map(one => one.text))
  const args = [SCRIPT, String(SECONDS), work, String(TEXTS.indexOf(text)), texts]
  return {
    name,
    async measure(): Promise<Figures> {
      const { stdout } = await runProgram(process.execPath, args, {}, [0])
      const rate = Number(stdout)
      if (!(rate > 0)) throw new Error(`${SCRIPT} printed unexpected output:\n${stdout}`)
      return { '/s': rate, µs: 1e6 / rate }
    },
  }
}
