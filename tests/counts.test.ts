import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { routerWork } from './counts/router-work.ts'
import { runtimeWork } from './counts/runtime-work.ts'
import { type Counts, difference, type Slack } from './counts/table.ts'
import type { Work } from './counts/work.ts'

/**
 * How much is done for a fixed piece of work, counted and not timed, so that it is the same on every machine and under every load.
 * `WAYBILL_COUNTS=write npm test -- tests/counts.test.ts` renews the table.
 */
const TABLE = new URL('counts/counts.json', import.meta.url).pathname
const table = (existsSync(TABLE) ? JSON.parse(readFileSync(TABLE, 'utf8')) : {}) as Record<string, Counts>

/**
 * What was spent is held against soft limits once for all the calls of 100 ms, by a timer: one read where the machine is quick, and one
 * more for each 100 ms that it is slower.
 */
const LOOKED_AT_EACH_100_MS = ['runtime: a run of one model call', 'runtime: a run of ten no-op steps']
const slackOf = (name: string, { ms = 0 }: Partial<Work>): Slack =>
  LOOKED_AT_EACH_100_MS.includes(name) ? { statements: Math.ceil(ms / 100) } : {}

let folder: string
let work: Record<string, Work>
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-counts-'))
  work = {
    ...(await runtimeWork(join(folder, 'runtime.db'))),
    ...(await routerWork(join(folder, 'router.db'))),
  }
  if (process.env.WAYBILL_COUNTS === 'write') {
    const found = Object.fromEntries(Object.entries(work).map(([name, { counts }]) => [name, counts]))
    writeFileSync(TABLE, `${JSON.stringify(found, null, 2)}\n`)
    Object.assign(table, found)
  }
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('a fixed piece of work costs what the table says', () => {
  it.each(Object.keys(table))('%s', name => {
    const { counts = {}, texts = [], ...took } = work[name] ?? {}
    const told = difference(name, table[name] ?? {}, counts, slackOf(name, took))
    if (told !== undefined) throw new Error([told, ...texts.map(text => `  ${text.slice(0, 160)}`)].join('\n'))
  })

  it('and there is no other piece of work than those of the table', () => {
    expect(Object.keys(work)).toEqual(Object.keys(table))
  })
})

describe('a table that does not hold', () => {
  it('is told with what to do about it', () => {
    expect(difference('a call', { commits: 2, rows: 3 }, { commits: 2, rows: 3 })).toBeUndefined()
    expect(difference('a call', { commits: 2, rows: 3 }, { commits: 4, rows: 3 })).toMatch(
      /^a call: commits 4, was 2\. It does more than it did: .* WAYBILL_COUNTS=write/s,
    )
    expect(difference('a call', { commits: 2 }, { commits: 1 })).toMatch(/It does less than it did: renew the table/)
    expect(difference('a call', { rows: 2 }, { rows: 4 }, { rows: 2 })).toBeUndefined()
    expect(difference('a call', { rows: 2 }, { rows: 5 }, { rows: 2 })).toMatch(/rows 5, was 2/)
    expect(difference('a call', { rows: 2 }, { rows: 1 }, { rows: 2 })).toMatch(/rows 1, was 2/)
    expect(difference('a call', { commits: 2 }, {})).toMatch(/commits 0, was 2/)
    expect(difference('a call', {}, { hashes: 2 })).toMatch(/hashes 2, was 0/)
  })
})
