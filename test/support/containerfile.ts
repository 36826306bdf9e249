/**
 * Reads the subset of Containerfile syntax that the project uses, and applies its COPY lines to folders, for
 * machines on which no container can be built.
 */
import { cp, mkdir, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { ROOT } from '../tidy/tree.ts'

/** The lines from one FROM to the next: values by instruction, in order. */
export type Stage = (instruction: string) => readonly string[]

export function stagesOf(containerfile: string): readonly Stage[] {
  return containerfile
    .split(/^(?=FROM )/m)
    .slice(1)
    .map(text => name => [...text.matchAll(new RegExp(`^${name} (.+)$`, 'gm'))].map(([, value = '']) => value))
}

/**
 * Builds a stage in a folder. A stage copies from the clone, or with `--from` from another stage that is
 * already built. The installed packages of this checkout are used.
 */
export async function copyInto(folder: string, stage: Stage, others: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const value of stage('COPY')) {
    const [, other, paths = ''] = /^(?:--from=(\w+) )?(.*)$/.exec(value) ?? []
    const words = paths.split(' ')
    const target = words.at(-1) ?? ''
    for (const path of words.slice(0, -1)) {
      const source = other === undefined ? join(ROOT, path) : join(others[other] ?? '', path.replace(/^\/src\//, ''))
      const name = target.endsWith('/') ? join(target, basename(path)) : target
      await cp(source, join(folder, name), { recursive: true })
    }
  }
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
}
