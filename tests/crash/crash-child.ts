import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { engineLimits } from '../../runtime/execution/engine-deps.ts'
import { engineFixture } from '../../runtime/execution/testing/engine-fixture.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { openThreaded } from '../open-threaded.ts'
import { corpus, remoteActions, remoteRunEnd } from './corpus.ts'
import { RUN_ID } from './run-id.ts'

/**
 * One life of a process that executes a case on the store in a folder, and kills itself at the n-th moment of a kind:
 * before or after a commit, before or after something reached the far end. Without a moment it lives to the end. Or it has trouble at
 * that commit: the disk is full for a while, the clock jumps, or another process holds the database for longer than is waited for.
 */
const [folder = '.', name, kind, at = '0'] = process.argv.slice(2)
const leaseMs = process.env.CRASH_LEASE_MS === undefined ? undefined : Number(process.env.CRASH_LEASE_MS)
const found = corpus.find(one => one.name === name)
if (!found) throw new Error(`there is no case ${name}`)
const { manifest, agents, contextTokens, answer, signals = [] } = found
const seen = { commit: 0, effect: 0, refused: 0 }
const FULL_MS = 300
let clockOff = 0

function moment(of: 'commit' | 'effect', when: 'before' | 'after', nth: number): void {
  if (nth !== Number(at)) return
  if (kind === `${when}-${of}`) process.kill(process.pid, 'SIGKILL')
  // Paused, and continued long after another process has taken over.
  if (kind === `pause-${when}-${of}`) process.kill(process.pid, 'SIGSTOP')
}

const effects = join(folder, 'effects.log')
function reached(what: string, key: string): void {
  const nth = ++seen.effect
  moment('effect', 'before', nth)
  appendFileSync(effects, `${JSON.stringify({ what, key })}\n`)
  moment('effect', 'after', nth)
}

/** A limit of pages is reached: the database refuses what needs a new one, as on a disk without room. */
let full = false
/** Commits under way. */
let writing = 0
async function fill(db: Db): Promise<void> {
  const { rows } = await db.execute('pragma page_count')
  await db.execute(`pragma max_page_count = ${Number(rows[0]?.[0])}`)
  full = true
  setTimeout(async () => {
    full = false
    await db.execute('pragma max_page_count = 1000000').catch(() => undefined)
  }, FULL_MS).unref()
}

/** Beyond the five seconds that a statement waits, and all that it is tried again. */
const HELD_MS = 12_500

async function hold(): Promise<void> {
  const program = fileURLToPath(new URL('./lock-child.ts', import.meta.url))
  const child = spawn(process.execPath, [program, join(folder, 'run.db'), String(HELD_MS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
}

/** The next write is one that needs room. */
const needsRoom = 'create table filler as select zeroblob(1000000) as room'

async function troubled<T>(db: Db, work: () => Promise<T>): Promise<T> {
  const nth = ++seen.commit
  // A process that is paused in the middle of another commit would hold the lock until it goes on.
  if (kind === 'pause-before-commit' && nth === Number(at)) while (writing > 0) await new Promise(setImmediate)
  moment('commit', 'before', nth)
  if (nth === Number(at)) {
    if (kind === 'disk-full') await fill(db)
    if (kind === 'busy') await hold()
    if (kind?.startsWith('clock')) clockOff += Number(kind.slice('clock'.length)) * 1000
  }
  try {
    if (full) await db.execute(needsRoom)
    writing++
    const working = work().finally(() => writing--)
    // On a file a thread writes: before its commit, in the middle of it, or after it.
    if (kind === 'during-commit' && nth === Number(at)) setTimeout(() => process.kill(process.pid, 'SIGKILL'), nth % 3)
    const result = await working
    moment('commit', 'after', nth)
    return result
  } catch (error) {
    seen.refused++
    throw error
  }
}

function watched(db: Db): Db {
  return {
    ...db,
    write: statements => troubled(db, () => db.write(statements)),
    async execute(statement) {
      const sql = typeof statement === 'string' ? statement : Array.isArray(statement) ? statement[0] : statement.sql
      if (!/^\s*(insert|update|delete)/i.test(sql)) return db.execute(statement)
      return troubled(db, () => db.execute(statement))
    },
  }
}

const fixture = await engineFixture({
  url: process.env.CRASH_STORE ?? join(folder, 'run.db'),
  manifest,
  // As in a service: on a file a thread makes the commits.
  open: process.env.CRASH_STORE === undefined ? openThreaded : openDb,
  wrap: watched,
  claimsNewRuns: true,
  ...(agents && { agents }),
  ...(contextTokens !== undefined && { contextTokens }),
  owner: `pid:${process.pid}`,
  clock: { ...systemClock, now: () => new Date(Date.now() + clockOff) },
  // The holder of a lease in this folder was killed by this very test, or is paused and looks alive.
  isGone: owner => leaseMs === undefined && owner !== `pid:${process.pid}`,
  limits: { ...engineLimits, recoveryMs: 100, ...(leaseMs !== undefined && { leaseMs }) },
  async ask(request, call) {
    reached('model', call.key)
    return answer(request.messages.filter(message => message.role === 'assistant').length, request, call)
  },
  connectorsOf: async () => remoteActions(reached),
  async outbound(request) {
    reached(`${request.method} ${request.url.pathname}`, request.headers['idempotency-key'] ?? '')
    return remoteRunEnd(request)
  },
})

const { db, runs, engine } = fixture
// As in a service, the run is claimed by the transaction that makes it; signals that it waits for stand before it begins.
if (signals.length === 0) await engine.start()
await insisting(() => fixture.create({ prompt: 'go' }, { id: RUN_ID }))
for (const [index, value] of signals.entries()) {
  if (readFileOr(join(folder, 'signals.log')).split('\n').includes(String(index))) continue
  const pending = await db.execute({ sql: 'select 1 from signals where id = ?', args: [`signal-${index}`] })
  if (pending.rows.length === 0) {
    await insisting(() =>
      runs.signal(RUN_ID, { id: `signal-${index}`, name: 'go', value: JSON.stringify(value), atMs: index }),
    )
  }
  appendFileSync(join(folder, 'signals.log'), `${index}\n`)
}
if (signals.length > 0) await engine.start()
await decide()
await fixture.close()
process.stdout.write(JSON.stringify(seen))

/** The human of the test: approves, and looks at the far end before saying whether an interrupted call happened. */
async function decide(): Promise<void> {
  for (;;) {
    const { rows } = await db.execute(
      "select id, run_id, step_id, reason, action from approvals where status = 'pending'",
    )
    for (const row of rows) {
      const key = `${row.run_id}:${row.step_id}:`
      const happened = readFileOr(effects)
        .split('\n')
        .find(line => line.includes(key))
      const decision =
        row.reason === 'question'
          ? { output: 'the second' }
          : row.reason !== 'uncertain_step'
            ? {}
            : happened === undefined
              ? { resolution: 'retry' }
              : { resolution: 'completed', output: { status: 200, headers: {}, body: JSON.parse(happened).what } }
      const statements = [
        {
          sql: "update approvals set status = 'approved', decided_by = 'test', decision = ? where id = ?",
          args: [JSON.stringify(decision), row.id as string],
        },
        { sql: 'update runs set due_ms = 0 where id = ?', args: [row.run_id as string] },
      ]
      await insisting(() => db.write(statements))
      engine.wake()
    }
    const run = await runs.get(RUN_ID)
    if (run && ['succeeded', 'failed', 'cancelled'].includes(run.status)) return
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** A caller from outside gets a failure, and asks again. */
async function insisting<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      // The disk may have room again by the time the refusal is heard.
      if (!(error instanceof Error && 'code' in error && error.code === 'SQLITE_FULL')) throw error
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
}

function readFileOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
