import { type Bench, ratioOf } from './harness.ts'
import {
  benchDb,
  columnNames,
  type JournalRow,
  journalInsert,
  journalRow,
  journalTable,
  newRun,
} from './journal-rows.ts'

const size = 200
const commits = 40
const ours = 'insertRows'

export const insertRowsBench: Bench = {
  title: 'Many rows in one commit',
  about: `${size} journal rows of about 400 bytes per commit, one writer, WAL file, synchronous=FULL.`,
  unit: 'rows/s',
  rounds: 7,
  expectations: [
    {
      says: 'insertRows over a batch of single inserts',
      value: m => ratioOf(m, ours, 'batch of single inserts'),
      atLeast: 2,
    },
    { says: 'insertRows over plain multi-row values', value: m => ratioOf(m, ours), atLeast: 1 },
  ],
  async prepare() {
    const { db, close } = await benchDb('full')
    await db.write([journalTable('multi'), journalTable('batched'), journalTable('by_rows')])
    const marks = `(${columnNames.map(() => '?').join(', ')})`
    const multi = `insert into multi values ${Array(size).fill(marks).join(', ')}`
    const one = `insert into batched values ${marks}`
    const rowsInsert = journalInsert('by_rows')
    const args = (row: JournalRow) => columnNames.map(name => row[name])
    return {
      variants: [
        {
          name: 'multi-row values',
          round: () => commitAll(rows => db.execute({ sql: multi, args: rows.flatMap(args) })),
        },
        {
          name: 'batch of single inserts',
          round: () => commitAll(rows => db.write(rows.map(row => ({ sql: one, args: args(row) })))),
        },
        { name: ours, round: () => commitAll(rows => db.execute(rowsInsert.statement(rows))) },
      ],
      close,
    }
  },
}

async function commitAll(commit: (rows: JournalRow[]) => Promise<unknown>): Promise<number> {
  const started = performance.now()
  for (let count = 0; count < commits; count++) {
    const run = newRun()
    await commit(Array.from({ length: size }, (_, index) => journalRow(run, index + 1)))
  }
  return (commits * size * 1000) / (performance.now() - started)
}
