import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { engineLimits } from '../../runtime/execution/engine-deps.ts'
import { engineRoom } from '../../runtime/execution/testing/engine-room.ts'
import type { Db } from '../../shared/sql/db.ts'
import { corpus, farActions, farEnd } from './corpus.ts'
import { RUN_ID } from './run-id.ts'

/**
 * One life of a process that executes a case on the store in a folder, and kills itself at the n-th moment of a kind:
 * before or after a commit, before or after something reached the far end. Without a moment it lives to the end.
 */
const [folder = '.', name, kind, at = '0'] = process.argv.slice(2)
const leaseMs = process.env.CRASH_LEASE_MS === undefined ? undefined : Number(process.env.CRASH_LEASE_MS)
const found = corpus.find(one => one.name === name)
if (!found) throw new Error(`there is no case ${name}`)
const { manifest, agents, contextTokens, answer, signals = [] } = found
const seen = { commit: 0, effect: 0 }

function moment(of: 'commit' | 'effect', when: 'before' | 'after'): void {
  if (when === 'before') seen[of]++
  if (seen[of] !== Number(at)) return
  if (kind === `${when}-${of}`) process.kill(process.pid, 'SIGKILL')
  // Paused, and told to go on long after somebody else has taken over.
  if (kind === `pause-${when}-${of}`) process.kill(process.pid, 'SIGSTOP')
}

const effects = join(folder, 'effects.log')
function reached(what: string, key: string): void {
  moment('effect', 'before')
  appendFileSync(effects, `${JSON.stringify({ what, key })}\n`)
  moment('effect', 'after')
}

function watched(db: Db): Db {
  return {
    ...db,
    async write(statements) {
      moment('commit', 'before')
      const results = await db.write(statements)
      moment('commit', 'after')
      return results
    },
    async execute(statement) {
      const sql = typeof statement === 'string' ? statement : Array.isArray(statement) ? statement[0] : statement.sql
      if (!/^\s*(insert|update|delete)/i.test(sql)) return db.execute(statement)
      moment('commit', 'before')
      const result = await db.execute(statement)
      moment('commit', 'after')
      return result
    },
  }
}

const room = await engineRoom({
  ...{ url: join(folder, 'run.db'), manifest, wrap: watched },
  ...(agents && { agents }),
  ...(contextTokens !== undefined && { contextTokens }),
  owner: `pid:${process.pid}`,
  // Whoever held a lease in this folder was killed by this very test, or is paused and looks alive.
  isGone: owner => leaseMs === undefined && owner !== `pid:${process.pid}`,
  limits: { ...engineLimits, recoveryMs: 100, ...(leaseMs !== undefined && { leaseMs }) },
  async ask(request, call) {
    reached('model', call.key)
    return answer(request.messages.filter(message => message.role === 'assistant').length, request, call)
  },
  connectorsOf: async () => farActions(reached),
  async outbound(request) {
    reached(`${request.method} ${request.url.pathname}`, request.headers['idempotency-key'] ?? '')
    return farEnd(request)
  },
})

const { db, runs, engine } = room
await room.create({ prompt: 'go' }, { id: RUN_ID })
for (const [index, value] of signals.entries()) {
  if (readFileOr(join(folder, 'signals.log')).split('\n').includes(String(index))) continue
  const pending = await db.execute({ sql: 'select 1 from signals where id = ?', args: [`signal-${index}`] })
  if (pending.rows.length === 0) {
    await runs.signal(RUN_ID, { id: `signal-${index}`, name: 'go', value: JSON.stringify(value), atMs: index })
  }
  appendFileSync(join(folder, 'signals.log'), `${index}\n`)
}
await engine.start()
await decide()
await room.close()
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
      await db.write([
        {
          sql: "update approvals set status = 'approved', decided_by = 'test', decision = ? where id = ?",
          args: [JSON.stringify(decision), row.id as string],
        },
        { sql: 'update runs set due_ms = 0 where id = ?', args: [row.run_id as string] },
      ])
      engine.wake()
    }
    const run = await runs.get(RUN_ID)
    if (run && ['succeeded', 'failed', 'cancelled'].includes(run.status)) return
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

function readFileOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
