import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../shared/sql/db.ts'
import { groupCommit } from '../../shared/sql/group-commit.ts'
import { type Bench, type Figure, quantile, ratioOf } from './harness.ts'
import {
  benchDb,
  columnNames,
  type JournalRow,
  journalInsert,
  journalRow,
  journalTable,
  newRun,
} from './journal-rows.ts'

const writers = 50
// Ten steps, each with its intent and its result.
const runLength = 20
const grouped = `group commit, ${writers} writers`
const bursts = `group commit, ${writers} writers, 4 rows at a time`

export const journalBench: Bench = {
  title: 'Journal appends',
  about: `${writers} concurrent writers, each waiting for its row to be on the disk before it appends the next; rows of about 450 bytes, WAL file, synchronous=FULL. "4 rows at a time" is a turn with four parallel calls. The gain is bounded by the disk: one insert per commit costs one sync, a row in a group costs 7 to 12 µs of processor, so a faster disk shows a smaller ratio.`,
  unit: 'rows/s',
  rounds: 7,
  expectations: [
    { says: 'group commit over one insert per commit', value: measured => ratioOf(measured, grouped), atLeast: 20 },
    {
      says: 'group commit over one insert per commit, 4 rows at a time',
      value: measured => ratioOf(measured, bursts),
      atLeast: 20,
    },
  ],
  async prepare() {
    const { db, close } = await benchDb('full')
    await db.write([journalTable('single'), journalTable('gathered'), journalTable('timed')])
    const single = `insert into single values (${columnNames.map(() => '?').join(', ')})`
    const gathered = journalInsert('gathered')
    const writer = groupCommit<JournalRow, void>({
      write: async rows => {
        await db.execute(gathered.statement(rows))
        return rows.map(() => undefined)
      },
    })
    return {
      variants: [
        {
          name: `one insert per commit, ${writers} writers`,
          round: () =>
            appendAll(20, async row => {
              await db.execute({ sql: single, args: columnNames.map(name => row[name]) })
            }),
        },
        { name: grouped, round: () => appendAll(300, row => writer.append(row)) },
        { name: bursts, round: () => appendAll(600, row => writer.append(row), 4) },
      ],
      figures: () => blocking(db),
      async close() {
        await writer.close()
        await close()
      },
    }
  },
}

/** Rows per second when every writer appends `each` rows one after the other. */
async function appendAll(each: number, append: (row: JournalRow) => Promise<void>, atOnce = 1): Promise<number> {
  const started = performance.now()
  await Promise.all(
    Array.from({ length: writers }, async () => {
      let run = newRun()
      for (let count = 0; count < each; count += atOnce) {
        const seq = (count % runLength) + 1
        if (seq === 1) run = newRun()
        await Promise.all(Array.from({ length: atOnce }, (_, index) => append(journalRow(run, seq + index))))
      }
    }),
  )
  return (writers * each * 1000) / (performance.now() - started)
}

/** The local driver is synchronous: for the length of a commit nothing else in the process runs. */
async function blocking(db: Db): Promise<Figure[]> {
  const insert = journalInsert('timed')
  const figures: Figure[] = []
  for (const size of [1, 50, 200]) {
    const times: number[] = []
    for (let commit = 0; commit < 300; commit++) {
      const run = newRun()
      const statement = insert.statement(Array.from({ length: size }, (_, index) => journalRow(run, index + 1)))
      const started = performance.now()
      await db.execute(statement)
      times.push(performance.now() - started)
      // A turn of the loop between commits, as there is in a server.
      await sleep(0)
    }
    times.sort((a, b) => a - b)
    for (const [label, share] of [
      ['median', 0.5],
      ['99th percentile', 0.99],
      ['longest', 1],
    ] as const) {
      figures.push({
        name: `loop blocked by a commit of ${size} rows, ${label}`,
        value: quantile(times, share),
        unit: 'ms',
      })
    }
  }
  figures.push(...(await timerLag('idle', async () => {})))
  const writer = groupCommit<JournalRow, void>({
    write: async rows => {
      await db.execute(insert.statement(rows))
      return rows.map(() => undefined)
    },
  })
  const run = newRun()
  let seq = 0
  figures.push(...(await timerLag('1,000 appends/s', () => writer.append(journalRow(run, ++seq)))))
  await writer.close()
  return figures
}

/** How late timers fire while something is started about every millisecond for two seconds. */
async function timerLag(label: string, act: () => Promise<void>): Promise<Figure[]> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const until = performance.now() + 2000
  const acts: Promise<void>[] = []
  while (performance.now() < until) {
    acts.push(act())
    await sleep(1)
  }
  await Promise.all(acts)
  delay.disable()
  // The histogram holds the time between ticks of a 1 ms timer, so the millisecond itself is taken off.
  const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - 1)
  return [
    { name: `timer lag, ${label}, 99th percentile`, value: late(delay.percentile(99)), unit: 'ms' },
    { name: `timer lag, ${label}, longest`, value: late(delay.max), unit: 'ms' },
  ]
}
