/** Reads a Containerfile as far as ours goes, and does what its COPY lines do: in folders, where no container can be built. */
import { cp, mkdir, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { ROOT } from '../tidy/tree.ts'

/** From one FROM to the next: values by instruction, in their order. */
export type Stage = (instruction: string) => readonly string[]

export function stagesOf(containerfile: string): readonly Stage[] {
  return containerfile
    .split(/^(?=FROM )/m)
    .slice(1)
    .map(text => name => [...text.matchAll(new RegExp(`^${name} (.+)$`, 'gm'))].map(([, value = '']) => value))
}

/** A stage copies from the clone, or `--from` another that is in its folder already. The packages are those that are installed here. */
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
