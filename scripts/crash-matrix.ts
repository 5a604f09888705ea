import { corpus } from '../tests/crash/corpus.ts'
import { differences, live, type Moment, momentKinds } from '../tests/crash/lives.ts'

/**
 * Kills a process at every commit and at every call of every case, before and after, and compares what is left once it has
 * been started again with the same case undisturbed. Two at a time. Exit 1 when anything differs.
 */
const started = performance.now()
const only = process.argv[2]
let killed = 0
let failed = 0
const table: string[] = [
  '| case | steps | commits | calls | kill points | as undisturbed |',
  '|---|---|---|---|---|---|',
]

for (const one of corpus) {
  if (only !== undefined && !one.name.includes(only)) continue
  const golden = await live(one)
  const moments = momentKinds.flatMap(kind => {
    const most = kind.endsWith('commit') ? golden.counts.commit : golden.counts.effect
    return Array.from({ length: most }, (_, at): Moment => ({ kind, at: at + 1 }))
  })
  let points = 0
  let same = 0
  const next = moments.values()
  const worker = async () => {
    for (const moment of next) {
      const life = await live(one, moment)
      // Timing decides how often a lease is renewed or a run looked for, so the last commits may not come.
      if (!life.killed) continue
      points++
      const wrong = differences(one, golden, life)
      if (wrong.length === 0) same++
      else process.stdout.write(`${one.name}, ${moment.kind} ${moment.at}:\n  ${wrong.join('\n  ')}\n`)
    }
  }
  await Promise.all([worker(), worker()])
  killed += points
  failed += points - same
  const { commit, effect } = golden.counts
  table.push(`| ${one.name} | ${golden.stepIds.length} | ${commit} | ${effect} | ${points} | ${same} |`)
}

process.stdout.write(`${table.join('\n')}\n`)
const seconds = Math.round((performance.now() - started) / 1000)
process.stdout.write(`${killed} kill points, ${killed - failed} as undisturbed, ${failed} not; ${seconds} s\n`)
process.exitCode = failed === 0 && killed > 0 ? 0 : 1
