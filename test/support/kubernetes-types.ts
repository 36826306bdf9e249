/**
 * Checks manifests against the schemas of the Kubernetes API, in the form of the types that the package
 * `kubernetes-types` generates from them: unknown fields, missing ones, and values of other types are errors.
 */
import { spawnSync } from 'node:child_process'
import { mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Document, parseAllDocuments } from 'yaml'
import { ROOT } from '../tidy/tree.ts'

/** A Kubernetes object. */
// biome-ignore lint/suspicious/noExplicitAny: manifests of many shapes
export type Manifest = any

/** The objects of a YAML file by kind; throws if it is not valid YAML. */
export function manifestsOf(text: string): Readonly<Record<string, Manifest>> {
  const documents = parseAllDocuments(text) as readonly Document[]
  return Object.fromEntries(
    documents.map(document => {
      if (document.errors.length > 0) throw document.errors[0]
      const manifest = document.toJS()
      return [manifest.kind, manifest]
    }),
  )
}

/** The source of a module in which a manifest has the type that its `kind` and `apiVersion` name. */
export function moduleOf(manifest: Manifest): string {
  const { kind, apiVersion } = manifest
  const type = `import('kubernetes-types/${apiVersion === 'v1' ? 'core/v1' : apiVersion}.js').${kind}`
  return `export const the${kind}: ${type} = ${JSON.stringify(manifest)}\n`
}

/** The compiler's messages about a module; empty if it compiles. `folder` is for its files. */
export async function compileModule(folder: string, source: string): Promise<string> {
  const place = await mkdtemp(join(folder, 'module-'))
  await symlink(join(ROOT, 'node_modules'), join(place, 'node_modules'))
  await writeFile(join(place, 'package.json'), '{"type": "module"}')
  await writeFile(join(place, 'module.ts'), source)
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', '']
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  return spawnSync(process.execPath, [compiler, ...options, 'module.ts'], { cwd: place, encoding: 'utf8' }).stdout
}
