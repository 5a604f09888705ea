import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AskModel, FoundModel } from '../../runtime/execution/models/model.ts'
import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import { nativeCipher } from '../../shared/host/native-crypto.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { ChainedEvent } from '../../shared/sign/journal-walk.ts'
import { checkJournal } from '../../shared/sign/testing/check-journal.ts'
import type { Db } from '../../shared/sql/db.ts'
import { manualClock } from '../../shared/time/testing/manual-clock.ts'
import { KEY } from '../runtime/api.ts'
import { watch, wrongAtRest, wrongMoves } from './watch.ts'

export interface Limits {
  maxCostUsdPerDay?: number | undefined
  maxTokensPerDay?: number | undefined
  maxRunsPerDay?: number | undefined
}
export interface Answer {
  status: number
  body: Record<string, unknown>
}
export type World = Awaited<ReturnType<typeof world>>

const REST_MS = 5000

/** A store whose process can die: from then on nothing of it reaches the file. */
function mortal(db: Db): Db & { die(): void } {
  let dead = false
  const alive =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> =>
      dead ? Promise.reject(new Error('this process is gone')) : call(...args)
  const { execute, write, read } = db
  return {
    ...db,
    execute: alive(execute),
    write: alive(write),
    read: alive(read),
    die() {
      dead = true
    },
  }
}

/** The runtime on a file, with a clock that moves only on command, and a model whose calls can be held open. */
export async function world(limits: Limits = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-fuzz-'))
  const url = join(folder, 'runtime.db')
  const clock = manualClock(new Date('2026-03-01T22:00:00Z'))
  const held = new Set<() => void>()
  const wrong: string[] = []
  let life = 0
  let db = mortal(await openDb(url))
  let runtime: Runtime

  /** What is spent and what may still be spent is never more than the limit, at any moment at which a model is asked. */
  async function checkBudget(): Promise<void> {
    const { maxCostUsdPerDay: usd, maxTokensPerDay: tokens, maxRunsPerDay: runs } = limits
    const { rows } = await db.execute({
      sql: `select coalesce(sum(u.cost_nano + u.uncertain_nano), 0) cost, coalesce(sum(u.tokens_in + u.tokens_out + u.uncertain_tokens), 0)
        tokens, coalesce(sum(u.runs), 0) runs, (select coalesce(sum(cost_nano), 0) from reservations) held_cost,
        (select coalesce(sum(tokens), 0) from reservations) held_tokens from usage_days u where day = ?
        and agent_id in (select agent_id from budgets)`,
      args: [clock.now().toISOString().slice(0, 10)],
    })
    const used = rows[0]!
    const cost = Number(used.cost) + Number(used.held_cost)
    if (usd !== undefined && cost > Math.round(usd * 1e9)) wrong.push(`the cost of a day is ${cost} nano of ${usd} USD`)
    const count = Number(used.tokens) + Number(used.held_tokens)
    if (tokens !== undefined && count > tokens) wrong.push(`the tokens of a day are ${count} of ${tokens}`)
    if (runs !== undefined && Number(used.runs) > runs) wrong.push(`the runs of a day are ${used.runs} of ${runs}`)
  }

  const ask: AskModel = async ({ messages, maxOutputTokens }, { signal, onDelta }) => {
    await checkBudget().catch(() => undefined)
    const opening = messages.findLastIndex(message => message.role === 'user')
    const user = messages[opening]
    const turn = messages.slice(opening).filter(message => message.role === 'assistant').length
    const word = user?.role === 'user' ? user.text.split(' ')[turn] : undefined
    if (word === 'boom') throw new Error('the model broke')
    if (word === 'hold') {
      await new Promise<void>((resolve, reject) => {
        const over = (end: () => void) => () => {
          held.delete(letGo)
          end()
        }
        const letGo = over(resolve)
        held.add(letGo)
        signal.addEventListener(
          'abort',
          over(() => reject(new Error('aborted'))),
          { once: true },
        )
      })
    }
    const calls = CALLS[word ?? ''] ?? []
    const tokensOut = Math.min(50, maxOutputTokens)
    if (calls.length === 0) onDelta?.('done')
    return {
      text: calls.length > 0 ? '' : 'done',
      stop: calls.length > 0 ? 'tools' : 'end',
      provider: 'test',
      model: 'test/metered',
      toolCalls: calls.map((call, at) => ({ id: `c${turn}-${at}`, ...call })),
      spent: { tokensIn: 10, tokensOut, costNano: 10_000 + tokensOut * 2000 },
    }
  }
  const model: FoundModel = { id: 'test/metered', ask, prices: async () => (i, o) => i * 1000 + o * 2000 }

  async function live(seesDeath: boolean): Promise<void> {
    const owner = `life-${++life}`
    runtime = createRuntime({
      db,
      clock,
      owner,
      cipher: nativeCipher,
      bootstrapKey: KEY,
      timers: false,
      turnTimeoutMs: 40,
      receiptSeed: new Uint8Array(32).fill(3),
      models: { find: async () => model },
      limits: { maxConcurrent: 64, recoveryMs: 10 },
      ...(seesDeath && { isGone: other => other !== owner }),
    })
    await runtime.ready()
    await watch(db)
  }

  async function call(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await runtime.fetch(
      new Request(`http://local${path}`, {
        method,
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    )
    const text = await answer.text()
    const read = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
    // The turn of a session tells the failure of its provider as its own status; everything else that is 500 is ours.
    if (answer.status >= 500 && (!path.endsWith('/messages') || read.code === 'internal')) {
      wrong.push(`${method} ${path}: ${answer.status} ${text}`)
    }
    return { status: answer.status, body: read }
  }

  async function rest(): Promise<void> {
    const sql = `select count(*) filter (where owner = ?1) busy,
      count(*) filter (where due_ms <= ?2 and owner is not ?1) due from runs`
    const deadline = performance.now() + REST_MS
    for (;;) {
      const { rows } = await db.execute({ sql, args: [`life-${life}`, clock.now().getTime()] })
      const { busy, due } = rows[0]!
      if (Number(busy) === held.size && Number(due) === 0) return
      if (performance.now() > deadline) {
        const open = `select id, status, owner, due_ms, epoch, recoveries, ending, parked from runs
          where status in ('queued', 'running', 'waiting')`
        const runs = JSON.stringify((await db.execute(open)).rows)
        throw new Error(
          `${busy} runs are busy, ${held.size} held and ${due} due: no rest at ${clock.now().getTime()}: ${runs}`,
        )
      }
      await new Promise(resolve => setTimeout(resolve, 1))
    }
  }

  await live(true)
  for (const [name, manifest] of Object.entries(AGENTS)) await call('POST', '/v1/agents', { name, manifest })
  if (Object.values(limits).some(limit => limit !== undefined)) await call('PUT', '/v1/agents/worker/budget', limits)

  return {
    clock,
    call,
    rest,
    wrong,
    rows: async (sql: string) => (await db.execute(sql)).rows.map(row => ({ ...row }) as Record<string, unknown>),
    due: () => runtime.scheduled(),
    letGo() {
      for (const one of held) one()
    },
    /** The next life on the same file; a death leaves its leases behind, and is known of or not. */
    async next(how: 'closed' | 'killed' | 'killed unseen'): Promise<void> {
      if (how !== 'closed') db.die()
      await runtime.close(0)
      held.clear()
      db.close()
      db = mortal(await openDb(url))
      await live(how !== 'killed unseen')
      // What its predecessor let go of, or held too long, is due at once; a host whose timers are off says when to look.
      await runtime.scheduled()
    },
    /** Throws with everything that does not hold now that nothing moves. */
    async check(): Promise<void> {
      await rest()
      await checkBudget()
      const found = [...wrong, ...(await wrongMoves(db)), ...(await wrongAtRest(db, clock.now().getTime()))]
      if (found.length > 0) throw new Error(found.join('\n'))
    },
    /** Every chain from its first event, and every receipt, as their holder would check them. */
    async checkChains(): Promise<void> {
      const { rows } = await db.execute("select id, status in ('succeeded', 'failed', 'cancelled') ended from runs")
      for (const { id, ended } of rows) {
        const { body } = await call('GET', `/v1/runs/${id}/journal`)
        const walked = checkJournal(String(id), body.events as ChainedEvent[])
        if (!walked.ok || walked.head !== body.head) throw new Error(`the journal of ${id} does not verify`)
        if (!ended) continue
        const receipt = await call('GET', `/v1/runs/${id}/receipt`)
        const said = await call('POST', '/v1/runs/receipts/verify', receipt.body)
        if (said.body.valid !== true) throw new Error(`the receipt of ${id}: ${JSON.stringify(said.body)}`)
      }
    },
    async close(): Promise<void> {
      await runtime.close(0)
      db.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const ASK = { name: 'ask_human', arguments: { prompt: 'how many?' } }
const CALLS: Record<string, { name: string; arguments: Record<string, unknown> }[]> = {
  hold: [{ name: 'wait', arguments: { seconds: 0 } }],
  wait: [{ name: 'wait', arguments: { seconds: 20 } }],
  signal: [{ name: 'wait_signal', arguments: { name: 'go' } }],
  ask: [ASK],
  both: [ASK, { name: 'wait', arguments: { seconds: 30 } }, ASK],
}
const PLAIN = {
  tools: ['wait', 'wait_signal', 'ask_human'],
  limits: { maxOutputTokens: 60 },
  retry: { maxAttempts: 1, backoffMs: 0 },
}
const AGENTS = {
  worker: PLAIN,
  careful: {
    ...PLAIN,
    approvals: { tools: ['wait'], expiresMinutes: 60, onReject: 'continue', onExpire: 'reject' },
  },
}
