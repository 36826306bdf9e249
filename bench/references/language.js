/**
 * `node language.js seconds work index texts`: how many of the texts a core processes per second. `texts` is
 * a JSON array; `#` in a text is replaced by a different number each time, so that results cannot be cached.
 * Plain JavaScript using `dist/`, because tsx would slow it down.
 */
import { format, parse, printSql } from '../../dist/language/index.js'

const VARIANTS = 64
const WARM_UP_SECONDS = 1

const [seconds = '1', name = 'print', index = '0', texts = '[]'] = process.argv.slice(2)
const inputs = JSON.parse(texts).map(text => Array.from({ length: VARIANTS }, (_, n) => text.replaceAll('#', n + 18)))
const trees = inputs.map(variants => variants.map(text => JSON.stringify(parse(text))))

/** Each returns a number that depends on its whole result, so that no work can be optimized away. */
const WORKS = {
  print: { inputs, work: text => printSql(parse(text)).text.length },
  lift: { inputs, work: text => printSql(parse(text), { parameters: 'all' }).parameters.length },
  format: { inputs, work: text => format(text).length },
  yardstick: { inputs: trees, work: text => JSON.parse(text).span.end },
}

/** CPU time of this thread instead of wall-clock time, so that other load does not count. */
function cpuSeconds() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

function rate({ inputs, work }, at, duration) {
  const began = cpuSeconds()
  let done = 0
  let sum = 0
  let took = 0
  while (took < duration) {
    for (const text of inputs[at]) sum += work(text)
    done += VARIANTS
    took = cpuSeconds() - began
  }
  if (!(sum > 0)) throw new Error('nothing was done')
  return done / took
}

// First all texts once, so that the code is compiled for more than one text, as in a server.
const chosen = Object.entries(WORKS).filter(([other]) => (other === 'yardstick') === (name === 'yardstick'))
for (const [, work] of chosen) {
  for (const at of inputs.keys()) rate(work, at, WARM_UP_SECONDS / chosen.length / inputs.length)
}
process.stdout.write(String(rate(WORKS[name], Number(index), Number(seconds))))
