import { mkdir, rm, stat } from 'node:fs/promises'
import { createRuntime } from '../../runtime/runtime.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { openWithWriteThread } from '../../shared/host/write-thread.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { keepingOfRuns, searches } from './keep-runs.ts'
import { type Figure, type Growth, medianMs, note } from './measured.ts'

const KEY = `wb_live_${'g'.repeat(43)}`
const DAY_MS = 86_400_000
const SPREAD_DAYS = 90
/** Runs that are deleted: the retention goes from one to the next. */
const OLD = 5000
/** Rows in one statement of the copying. */
const CHUNK = 50_000

/** Stores with that many runs that have ended, each a copy of one that was really executed, and what using them costs. */
export async function growthOfRuns(folder: string, sizes: number[], say: (line: string) => void): Promise<Growth> {
  const growth: Growth = { title: 'Runs: time of one operation', sizes, bytesPerRow: [], operations: [] }
  for (const size of sizes) {
    const data = `${folder}/runs-${size}`
    const path = `${data}/waybill.db`
    await mkdir(data)
    const lost = (why: string) => say(`the thread for commits ended: ${why}`)
    const db = await openWithWriteThread(path, { lost })
    await db.ready
    // Without a master key: a text that was sealed for one run opens in no copy of it.
    const receiptSeed = new Uint8Array(32).fill(3)
    const options = { db, receiptSeed, sha256: nativeSha256, bootstrapKey: KEY, timers: false }
    const runtime = createRuntime(options)
    await runtime.ready()
    const call = caller(runtime.fetch)
    await call(201, 'POST', '/v1/agents', { name: 'grown', manifest: { model: 'demo/echo' } })
    await call(200, 'PUT', '/v1/agents/grown/budget', { maxRunsPerDay: 10_000_000, maxTokensPerDay: 1_000_000_000_000 })
    const start = async (): Promise<Run> => {
      const { id } = await call<Run>(201, 'POST', '/v1/runs', {
        agentName: 'grown',
        input: { prompt: 'hello topic0 order0' },
      })
      await runtime.advance(10_000)
      return call<Run>(200, 'GET', `/v1/runs/${id}`)
    }
    const template = await start()
    if (!isTerminal(template.status)) throw new Error('the run to copy has not ended')
    const emptyBytes = await pages(db)
    const began = performance.now()
    await copies(db, template.id, size - 1)
    say(`${size} runs written in ${Math.round((performance.now() - began) / 1000)} s`)

    const indexed = performance.now()
    await runtime.scheduled()
    const indexMs = ((performance.now() - indexed) / size) * 1000
    await db.execute('pragma wal_checkpoint(truncate)')
    growth.bytesPerRow.push(((await stat(path)).size - emptyBytes) / size)

    const answer = await db.execute({
      sql: 'select id from runs order by created_ms limit 1 offset ?',
      args: [size >> 1],
    })
    const middle = rowsOf<{ id: string }>(answer)[0]!.id
    const figures: Figure[] = [
      ['list of 50, newest', await medianMs(40, () => call(200, 'GET', '/v1/runs?limit=50'))],
      ['list of 50, by status', await medianMs(40, () => call(200, 'GET', '/v1/runs?limit=50&status=succeeded'))],
      ['get', await medianMs(100, () => call(200, 'GET', `/v1/runs/${middle}`))],
      ['journal', await medianMs(100, () => call(200, 'GET', `/v1/runs/${middle}/journal`))],
      ['a whole run', await medianMs(60, start)],
      ['budget check', await medianMs(100, () => call(200, 'GET', '/v1/agents/grown/budget'))],
      ['usage of 30 days', await medianMs(40, () => call(200, 'GET', '/v1/usage?groupBy=day'))],
      ['sweep', await medianMs(40, () => runtime.scheduled())],
    ]
    note(growth, figures)
    const retaining = createRuntime({ ...options, retentionDays: SPREAD_DAYS * (1 - OLD / size) })
    const store = {
      old: OLD.toLocaleString('en-US'),
      folder: data,
      call,
      start,
      retain: async () => void (await retaining.scheduled()),
    }
    note(growth, [['indexing 1,000 for the search', indexMs], ...(await searches(store, size >> 1))])
    note(growth, await keepingOfRuns(store))
    await retaining.close()
    await runtime.close()
    await db.close()
    await rm(data, { recursive: true })
  }
  return growth
}

async function pages(db: Db): Promise<number> {
  const [count, size] = await db.read(['pragma page_count', 'pragma page_size'])
  return rowsOf<{ page_count: number }>(count!)[0]!.page_count * rowsOf<{ page_size: number }>(size!)[0]!.page_size
}

/** Copies of one run in every table that knows it, created evenly over the last months, oldest first. */
async function copies(db: Db, id: string, count: number): Promise<void> {
  const step = Math.max(1, Math.floor((SPREAD_DAYS * DAY_MS) / (count + 1)))
  const firstMs = Date.now() - SPREAD_DAYS * DAY_MS
  const tables = [
    { name: 'runs', key: 'id' },
    { name: 'run_data', key: 'run_id' },
    { name: 'events', key: 'run_id' },
    { name: 'receipts', key: 'run_id' },
  ]
  const described = await Promise.all(
    tables.map(async table => {
      const answer = await db.execute(`select name from pragma_table_info('${table.name}')`)
      return { ...table, columns: rowsOf<{ name: string }>(answer).map(({ name }) => name) }
    }),
  )
  const at = `(${firstMs} + n.i * ${step})`
  // Of the time that the run was made at, as its id says it: the index of the search goes by it.
  const copyId = `printf('%08x-%04x-7000-8000-%012x', ${at} >> 16, ${at} & 65535, n.i)`
  for (let from = 1; from <= count; from += CHUNK) {
    const to = Math.min(count, from + CHUNK - 1)
    await db.write(
      described.map(({ name, key, columns }) => {
        const values = columns.map(column => {
          if (column === key) return copyId
          if (/^(?:created|updated|started|finished|issued)_ms$/.test(column)) return at
          if (column === 'input')
            return "json_set(t.input, '$.prompt', printf('hello topic%d order%d', n.i % 1000, n.i))"
          return `t.${column}`
        })
        return {
          sql: `with recursive n (i) as (select ${from} union all select i + 1 from n where i < ${to})
            insert into ${name} (${columns.join(', ')}) select ${values.join(', ')} from n cross join ${name} as t where t.${key} = ?`,
          args: [id],
        }
      }),
    )
  }
}

function caller(fetch: (request: Request) => Promise<Response>) {
  return async <T>(status: number, method: string, path: string, body?: object): Promise<T> => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const answer = await fetch(new Request(`http://local${path}`, init))
    const text = await answer.text()
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return JSON.parse(text) as T
  }
}
