/** Other JavaScript engines than that of Node.js, which `.ci/programs` installs from npm. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { ROOT } from '../tidy/tree.ts'

const FOLDER = join(ROOT, '.cache/runtimes')

/** Paths of the engines. */
export const BUN: string = join(FOLDER, 'node_modules/.bin/bun')
export const DENO: string = join(FOLDER, 'node_modules/.bin/deno')
/** The engine of React Native. */
export const HERMES: string = join(FOLDER, `node_modules/hermes-engine-cli/${hermesFolder()}/hermes`)
/** The folder of packages that the output of `forReactNative` imports. */
export const RUNTIME_PACKAGES: string = join(FOLDER, 'node_modules')

/** The reason why tests of an engine cannot run here; null if they can. */
export function missingRuntime(path: string): string | null {
  return existsSync(path) ? null : `${path} is not installed (see .ci/programs)`
}

/** The code as the bundler of React Native translates it for its engine. */
export function forReactNative(code: string): string {
  const require = createRequire(join(FOLDER, 'package.json'))
  const { transformSync } = require('@babel/core') as {
    transformSync(code: string, options: object): { readonly code: string }
  }
  return transformSync(code, {
    ...{ presets: [require.resolve('@react-native/babel-preset')], babelrc: false, configFile: false, cwd: FOLDER },
    ...{ filename: 'client.js', sourceType: 'script' },
  }).code
}

function hermesFolder(): string {
  return { darwin: 'osx-bin', win32: 'win64-bin' }[process.platform as string] ?? 'linux64-bin'
}
