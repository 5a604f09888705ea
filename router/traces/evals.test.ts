import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Db } from '../../shared/sql/db.ts'
import { storeFolder } from '../host/testing/store-folder.ts'
import { evals } from './evals.ts'
import { savings } from './savings.ts'

const DAY = Date.UTC(2026, 0, 1)
const CALLS = 12_000
const REPORTS = 5000

let folder: Awaited<ReturnType<typeof storeFolder>>
beforeAll(async () => {
  folder = await storeFolder()
})
afterAll(() => folder.remove())

/** A store with many calls of one day, as far apart as asked, the first of them reported: every tenth failed. */
async function busyDay(name: string, apartMs: number): Promise<Db> {
  const db = await folder.open(name)
  const numbers = (most: number) => `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${most})`
  await db.write([
    {
      sql: `insert into traces (tenant_id, seq, trace_id, ts_ms, session_id, mode, route_ix, served_from, served_rung, served_model,
          total_nano, gate_nano, baseline_nano, escalations, failovers, gates, body)
        ${numbers(CALLS)} select 'default', i, printf('%032x', i), ${DAY} + i * ${apartMs}, 's', 'enforce', 0, 'attempt', 0, 'a/cheap',
          1000, 0, 3000, 0, 0, '[["json-valid","pass",0,12]]', '{"final":{"wall_ms":5}}' from n`,
      args: [],
    },
    {
      sql: `insert into feedback (tenant_id, seq, feedback_id, trace_id, gate_id, reporter, verdict, ts_ms, hash, body)
        ${numbers(REPORTS)} select 'default', i, i, printf('%032x', i), 'outcome', 'ci', iif(i % 10 = 0, 'fail', 'pass'), 0, i, '{}' from n`,
      args: [],
    },
  ])
  return db
}

/** How often other work had its turn meanwhile. */
async function turnsBeside<T>(work: () => Promise<T>): Promise<{ turns: number; answer: T }> {
  let turns = 0
  let over = false
  const turn = () => {
    turns++
    if (!over) setImmediate(turn)
  }
  setImmediate(turn)
  try {
    return { answer: await work(), turns }
  } finally {
    over = true
  }
}

it.each([
  ['spread over the day', 7],
  ['all at once', 0],
])('a busy day is read in stretches, and other work has its turn between them: %s', async (name, apartMs) => {
  const db = await busyDay(`${name}.db`, apartMs)
  const chains = [{ db, tenant: 'default' }]
  const summed = await turnsBeside(() => savings(chains, {}))
  expect(summed.answer).toMatchObject({ requests: CALLS, spent_usd: 0.012, baseline_same_token_usd: 0.036 })
  const found = await turnsBeside(() => evals(chains, {}))
  expect(found.answer).toMatchObject({
    requests: CALLS,
    served_by_rung: { '0': CALLS },
    gates: [{ gate_id: 'json-valid', pass: CALLS, fail: 0 }],
    outcomes: { reported: REPORTS, failed: REPORTS / 10 },
  })
  // A millisecond is not cut.
  expect(summed.turns).toBeGreaterThanOrEqual(apartMs === 0 ? 1 : 3)
  expect(found.turns).toBeGreaterThanOrEqual(apartMs === 0 ? 3 : 5)
})
