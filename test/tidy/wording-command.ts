/**
 * `npm run wording -- PATH…` lists the hits of the word check in files and folders. `npm run wording --
 * --record` writes the numbers that have fallen to the record.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT, read } from './tree.ts'
import { checkedFiles, countByFolder, hitsIn, lowerCounts, printRecord, RECORD_PATH, readRecord } from './wording.ts'

const USAGE = 'usage: npm run wording -- PATH… | --record'

function record(): void {
  writeFileSync(join(ROOT, RECORD_PATH), printRecord(lowerCounts(countByFolder(), readRecord())))
}

function list(paths: readonly string[]): void {
  const wanted = paths.map(path => path.replace(/^\.\/|\/$/g, ''))
  const files = checkedFiles().filter(file => wanted.some(path => file === path || file.startsWith(`${path}/`)))
  if (files.length === 0) {
    console.error(`the word check reads no file at ${paths.join(', ')}; name files or folders from the root`)
    process.exitCode = 1
    return
  }
  const hits = files.map(file => hitsIn(file, read(file)))
  for (const { path, line, text, advice } of hits.flatMap(({ phrases, longLines }) => [...phrases, ...longLines])) {
    console.log(`${path}:${line} ${text}  [${advice}]`)
  }
  const phrases = hits.reduce((sum, one) => sum + one.phrases.length, 0)
  const longLines = hits.reduce((sum, one) => sum + one.longLines.length, 0)
  console.log(`${phrases} phrases and ${longLines} long lines in ${files.length} files`)
}

const args = process.argv.slice(2)
if (args.length === 1 && args[0] === '--record') record()
else if (args.length > 0 && !args.some(arg => arg.startsWith('-'))) list(args)
else {
  console.error(USAGE)
  process.exitCode = 2
}
