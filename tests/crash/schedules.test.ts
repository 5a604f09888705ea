import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { scheduleFixture } from '../../runtime/schedules/testing/schedule-fixture.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'

const program = fileURLToPath(new URL('./schedule-child.ts', import.meta.url))
const SCHEDULES = 60

interface Instance {
  child: ChildProcess
  ready: Promise<void>
  ended: Promise<{ code: number | null; signal: string | null; stderr: string }>
}

function begin(path: string, kill?: { at: number; when: 'before' | 'after' }): Instance {
  const args = [program, path, ...(kill ? ['kill', String(kill.at), kill.when] : [])]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: 40_000 })
  let stderr = ''
  child.stderr.on('data', chunk => {
    stderr += String(chunk)
  })
  return {
    child,
    ready: new Promise(resolve => child.stdout.once('data', () => resolve())),
    ended: new Promise(resolve => child.on('close', (code, signal) => resolve({ code, signal, stderr }))),
  }
}

/**
 * Two instances fire 60 schedules of every second on one store. One kills itself while it takes a second's windows, another
 * takes its place, and at the end every window from the first to the last has a row and exactly one run with its input.
 */
it.each(['before', 'after'] as const)(
  'has one run for each window when an instance is killed %s it commits many of them',
  async when => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-schedules-'))
    const path = join(folder, 'runtime.db')
    const db = await openDb(path)
    const fixture = await scheduleFixture({ db, clock: manualClock(new Date()) })
    const ids: string[] = []
    for (let at = 0; at < SCHEDULES; at++)
      ids.push(await fixture.add('* * * * * *', { catchUp: 'all', catchUpLimit: 100 }))

    const steady = begin(path)
    const killed = begin(path, { at: 2, when })
    await Promise.all([steady.ready, killed.ready])
    expect((await killed.ended).signal).toBe('SIGKILL')
    const next = begin(path)
    await next.ready
    await windowsOf(4)
    for (const { child } of [steady, next]) child.kill('SIGTERM')
    for (const { ended } of [steady, next]) expect(await ended).toEqual({ code: 0, signal: null, stderr: '' })

    for (const id of ids) {
      const { rows } = await db.execute({
        sql: `select f.window_ms, f.outcome, (select count(*) from runs where id = f.run_id) as run,
          (select count(*) from run_data where run_id = f.run_id) as input
          from schedule_fires f where schedule_id = ? order by window_ms`,
        args: [id],
      })
      const first = Number(rows[0]!.window_ms)
      expect(rows.map(row => ({ ...row }))).toEqual(
        rows.map((_, at) => ({ window_ms: first + at * 1000, outcome: 'started', run: 1, input: 1 })),
      )
      const counted = await db.execute({ sql: 'select count(*) as runs from runs where schedule_id = ?', args: [id] })
      expect(Number(counted.rows[0]!.runs)).toBe(rows.length)
    }
    await fixture.close()
    db.close()
    await rm(folder, { recursive: true, force: true })

    /** Waits for so many further windows of every schedule. */
    async function windowsOf(more: number): Promise<void> {
      const count = async () => {
        const { rows } = await db.execute('select count(*) as fires from schedule_fires')
        return Number(rows[0]!.fires)
      }
      const wanted = (await count()) + more * SCHEDULES
      while ((await count()) < wanted) await new Promise(resolve => setTimeout(resolve, 20))
    }
  },
  60_000,
)
