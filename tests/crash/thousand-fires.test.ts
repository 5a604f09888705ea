import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { scheduleFixture } from '../../runtime/schedules/testing/schedule-fixture.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { slice } from '../slice.ts'

const program = fileURLToPath(new URL('./schedule-child.ts', import.meta.url))
const SCHEDULES = 1000
const EVERY_MS = 4000

function begin(path: string, kill: string[] = []) {
  const child: ChildProcess = spawn(process.execPath, [program, path, ...kill], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 50_000,
  })
  let stderr = ''
  child.stderr?.on('data', chunk => {
    stderr += String(chunk)
  })
  return {
    child,
    ready: new Promise<void>(resolve => child.stdout?.once('data', () => resolve())),
    ended: new Promise(resolve => child.on('close', (code, signal) => resolve({ code, signal, stderr }))),
  }
}

/** How many windows stand, and how many of them in the newest one. */
async function fires(db: Db): Promise<{ windowMs: number; fired: number }[]> {
  const { rows } = await db.execute(
    'select window_ms, count(*) as fired from schedule_fires group by window_ms order by window_ms',
  )
  return rows.map(row => ({ windowMs: Number(row.window_ms), fired: Number(row.fired) }))
}

/**
 * A thousand schedules have the same window. Two instances take them, and one of them dies in the middle: by its own hand on either
 * side of a commit that takes windows, or from outside while the first of the thousand are already there.
 */
it.each(slice('moments of a kill', ['before a commit', 'after a commit', 'from outside'], 1))(
  'a thousand windows of one instant have one run each when one of two instances is killed %s',
  async when => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-thousand-'))
    const path = join(folder, 'runtime.db')
    const db = await openDb(path)
    const fixture = await scheduleFixture({ db, clock: manualClock(new Date()) })
    for (let at = 0; at < SCHEDULES; at++) await fixture.add(`*/${EVERY_MS / 1000} * * * * *`, { catchUp: 'all' })
    // What was due while they were made is not the instant that is meant.
    const dueMs = (Math.floor(Date.now() / EVERY_MS) + 1) * EVERY_MS
    await db.execute({ sql: 'update schedules set due_ms = ?', args: [dueMs + EVERY_MS] })

    const steady = begin(path)
    const killed = begin(path, when === 'from outside' ? [] : ['kill', '1', when.split(' ')[0] ?? ''])
    await Promise.all([steady.ready, killed.ready])
    if (when === 'from outside') {
      while ((await fires(db)).length === 0) await new Promise(resolve => setTimeout(resolve, 1))
      killed.child.kill('SIGKILL')
    }
    expect(await killed.ended).toMatchObject({ signal: 'SIGKILL' })
    const diedMs = Date.now()
    // The one that is left completes the instant at which the other died, and the next one.
    const whole = async () =>
      (await fires(db)).filter(({ windowMs, fired }) => windowMs + EVERY_MS > diedMs && fired >= SCHEDULES)
    while ((await whole()).length < 2) await new Promise(resolve => setTimeout(resolve, 20))
    steady.child.kill('SIGTERM')
    expect(await steady.ended).toEqual({ code: 0, signal: null, stderr: '' })

    const windows = (await fires(db)).map(({ fired }) => fired)
    expect(windows.slice(0, -1)).toEqual(windows.slice(0, -1).map(() => SCHEDULES))
    const { rows } = await db.execute(`select f.outcome, count(*) as fires, count(distinct f.run_id) as named,
      sum(exists (select 1 from runs where id = f.run_id and schedule_id = f.schedule_id)) as made,
      sum(exists (select 1 from run_data where run_id = f.run_id)) as inputs, (select count(*) from runs) as runs
      from schedule_fires f group by f.outcome`)
    const all = windows.reduce((sum, fired) => sum + fired, 0)
    expect(rows.map(row => ({ ...row }))).toEqual([
      { outcome: 'started', fires: all, named: all, made: all, inputs: all, runs: all },
    ])
    console.log(`killed ${when}: ${windows.length} instants, ${all} windows, ${all} runs`)
    await fixture.close()
    db.close()
    await rm(folder, { recursive: true, force: true })
  },
  60_000,
)
