import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { silentLog } from '../../shared/log/log.ts'
import { recordChainChecker } from '../../shared/sign/record-chain.ts'
import { type Db, rowsOf } from '../../shared/sql/db.ts'
import { migrate } from '../../shared/sql/migrate.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { type FeedbackRecord, feedbackRecord, type Verdict } from '../../shared/wire/router/feedback.ts'
import { adaptiveConformal, type Turn } from '../calibrate/adaptive-conformal.ts'
import { calibrationCache } from '../calibrate/calibration-cache.ts'
import { type EntryRow, storedPairs, toEntry } from '../calibrate/calibration-store.ts'
import { lttCertificate, type Pair, tieGroups } from '../calibrate/certify-threshold.ts'
import type { Calibration } from '../config/routing-config.ts'
import { routerSteps } from '../schema/steps.ts'
import { feedbackWriter } from './feedback-writer.ts'
import type { Subject } from './settle.ts'

const SETTINGS: Calibration = {
  alpha: 0.1,
  delta: 0.05,
  gamma: 0.02,
  minN: 30,
  window: 40,
  feedbackDelayMs: 0,
  method: 'aci',
  initial: 0.5,
  bet: 0.5,
}
const ROUTES = ['a'.repeat(64), 'b'.repeat(64)]

function turnOfWords(said: ReadonlyMap<string, Verdict>): Turn {
  const all = [...said.values()]
  if (all.includes('fail')) return 'fail'
  return all.includes('pass') ? 'pass' : undefined
}

/** What one process has of its own: a connection, a book and a writer. */
async function processOn(file: string, settings = SETTINGS, now = systemClock.now) {
  const db = await openDb(file, { synchronous: 'normal' })
  await migrate(db, 'router', routerSteps)
  const book = calibrationCache({ db, clock: systemClock, log: silentLog() })
  await book.refresh()
  const writer = feedbackWriter({
    db,
    book,
    settings: () => settings,
    now,
    monotonic: systemClock.monotonic,
  })
  return { db, book, writer }
}

async function inFolder(work: (file: string) => Promise<void>) {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-feedback-'))
  try {
    await work(join(folder, 'router.db'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const SCORES = [1, 0.9, 0.5, 0.1 + 0.2, 0, null]

/** The answers that reports are about: two tenants, two routes, some without a score, some that served nothing. */
const SUBJECTS: Subject[] = Array.from({ length: 24 }, (_, i) => ({
  tenantId: i % 3 === 0 ? 'two' : 'one',
  traceId: uuidv7(1_700_000_000_000 + i),
  sessionId: `session ${i % 5}`,
  answeredMs: 1_700_000_000_000 + i,
  served:
    i % 8 === 7
      ? undefined
      : {
          route: { fingerprint: ROUTES[i % 2]!, serve_threshold: null },
          rung: i % 2,
          score: SCORES[i % SCORES.length]!,
        },
}))

const report = fc.record({
  subject: fc.nat(SUBJECTS.length - 1),
  process: fc.nat(1),
  verdict: fc.constantFrom<Verdict>('pass', 'fail', 'abstain'),
  reporter: fc.constantFrom('ci', 'person'),
  /** Whether the next report waits for this one. */
  settles: fc.boolean(),
})
type Step = { subject: number; process: number; verdict: Verdict; reporter: string; settles: boolean }

const stored = async (db: Db) => {
  const { rows } = await db.execute('select body from feedback order by tenant_id, seq')
  return rows.map(row => feedbackRecord.parse(readJson(String(row.body))))
}

/** What the reports come to, told the slow way: one by one in the order of the chain, and everything counted anew. */
function retold(records: readonly FeedbackRecord[], tenant: string, route: string) {
  const words = new Map<string, Map<string, Verdict>>()
  const turns = new Map<string, Turn>()
  const subjects = new Map(SUBJECTS.map(one => [one.traceId, one]))
  const order: string[] = []
  let t = SETTINGS.initial
  for (const { trace_id, gate_id, reporter, verdict } of records) {
    const { served, tenantId } = subjects.get(trace_id)!
    if (served?.route.fingerprint !== route || tenantId !== tenant) continue
    const said = words.get(trace_id) ?? new Map<string, Verdict>()
    words.set(trace_id, said.set(`${gate_id} ${reporter}`, verdict))
    const all = [...said.values()]
    const turn = all.includes('fail') ? 'fail' : all.includes('pass') ? 'pass' : undefined
    if (served.score !== null) t = adaptiveConformal(t, turns.get(trace_id), turn, SETTINGS)
    if (turn !== undefined && served.score !== null && !order.includes(trace_id)) order.push(trace_id)
    turns.set(trace_id, turn)
  }
  const pairs = order.flatMap((id): Pair[] => {
    const turn = turns.get(id)
    return turn === undefined ? [] : [{ score: subjects.get(id)!.served!.score!, failed: turn === 'fail' }]
  })
  const known = [...turns.values()].filter(turn => turn !== undefined)
  return { t, pairs, reported: known.length, failed: known.filter(turn => turn === 'fail').length }
}

describe('the feedback writer', () => {
  it('of two processes on one store keeps one chain and one calibration, and both agree on it', {
    timeout: 60_000,
  }, async () => {
    let reports = 0
    await fc.assert(
      fc.asyncProperty(fc.array(report, { minLength: 20, maxLength: 120 }), async (steps: Step[]) => {
        await inFolder(async file => {
          const processes = [await processOn(file), await processOn(file)]
          const taken: Promise<unknown>[] = []
          for (const { subject, process, verdict, reporter, settles } of steps) {
            const given = { ref: 'x', gate_id: 'outcome', verdict, reporter }
            const one = processes[process]!.writer.append({
              subject: SUBJECTS[subject]!,
              given,
              feedbackId: uuidv7(),
              at: new Date(),
            })
            taken.push(one)
            if (settles) await one
          }
          await Promise.all(taken)
          reports += taken.length
          const [first, second] = processes as [(typeof processes)[0], (typeof processes)[0]]
          const records = await stored(first.db)
          for (const tenant of ['one', 'two']) {
            const chain = recordChainChecker()
            const own = records.filter(({ tenant_id }) => tenant_id === tenant)
            for (const record of own) expect(chain.push(record)).toBeUndefined()
          }
          await first.book.refresh()
          await second.book.refresh()
          for (const tenant of ['one', 'two']) {
            for (const route of ROUTES) {
              const entry = first.book.get(tenant, route)
              expect(second.book.get(tenant, route)).toEqual(entry)
              const { t, pairs, reported, failed } = retold(records, tenant, route)
              expect([entry?.kept.t ?? 0.5, entry?.kept.reported ?? 0, entry?.kept.failed ?? 0]).toEqual([
                t,
                reported,
                failed,
              ])
              const found: Pair[] = []
              for await (const { score, failed } of storedPairs(first.db, tenant, route)) found.push({ score, failed })
              expect(found).toEqual(pairs)
              expect(entry?.kept.n ?? 0).toBe(pairs.length)
              if (entry === undefined) continue
              const window = [...(await first.book.window(entry, SETTINGS.window)).pairs()]
              expect(window).toEqual([...(await second.book.window(entry, SETTINGS.window)).pairs()])
            }
          }
          for (const { db } of processes) db.close()
        })
      }),
      { numRuns: 25 },
    )
    console.info(`two processes: ${reports} reports, one chain for each tenant`)
  })

  it('keeps memory and store the same while many answers come, and certifies what the plain walk certifies', async () => {
    await inFolder(async file => {
      const { db, book, writer } = await processOn(file)
      const route = { fingerprint: ROUTES[0]!, serve_threshold: null }
      for (let i = 0; i < 200; i++) {
        const score = [1, 1, 0.5, 0][i % 4]!
        const failed = score === 0 ? i % 3 === 0 : i % 41 === 40
        await writer.append({
          subject: {
            tenantId: 'one',
            traceId: uuidv7(),
            sessionId: `${i}`,
            answeredMs: i,
            served: { route, rung: 0, score },
          },
          given: { ref: 'x', gate_id: 'outcome', verdict: failed ? 'fail' : 'pass', reporter: 'ci' },
          feedbackId: uuidv7(),
          at: new Date(),
        })
        const { kept } = book.get('one', ROUTES[0]!)!
        if (i % 20 !== 0) continue
        const [row] = rowsOf<EntryRow>(await db.execute('select * from calibration'))
        expect(toEntry(row!).kept).toEqual(kept)
        const pairs = [...(await book.window(book.get('one', ROUTES[0]!)!, SETTINGS.window)).pairs()]
        expect(pairs).toHaveLength(Math.min(i + 1, SETTINGS.window))
        if (kept.certifiedAt === kept.places && !kept.lost) {
          const walk = lttCertificate(tieGroups(pairs), SETTINGS)
          expect(kept.certifiedLambda).toBe(walk.passed?.lambda ?? null)
        }
        const above = pairs.filter(({ score }) => kept.certifiedLambda !== null && score >= kept.certifiedLambda)
        expect([kept.guardN, kept.guardFailures]).toEqual([above.length, above.filter(one => one.failed).length])
      }
      db.close()
    })
  })

  it('refuses nothing when another process commits in between, and leaves nothing of a commit that failed', async () => {
    await inFolder(async file => {
      const [a, b] = [await processOn(file), await processOn(file)]
      const subject = SUBJECTS[1]!
      const said = (verdict: Verdict, reporter: string) => ({
        subject,
        given: { ref: 'x', gate_id: 'outcome', verdict, reporter },
        feedbackId: uuidv7(),
        at: new Date(),
      })
      // The other one commits after the first has read and before it writes, twice.
      let times = 0
      const write = a.db.write
      a.db.write = async statements => {
        if (times++ < 2) await b.writer.append(said('pass', `other-${times}`))
        return write(statements)
      }
      expect(await a.writer.append(said('fail', 'own'))).toMatchObject({ status: 'recorded', verdict: 'fail' })
      expect(times).toBe(3)
      const records = await stored(a.db)
      expect(records.map(({ reporter }) => reporter)).toEqual(['other-1', 'other-2', 'own'])
      await b.book.refresh()
      expect(a.book.get('one', ROUTES[1]!)).toEqual(b.book.get('one', ROUTES[1]!))
      expect(a.book.get('one', ROUTES[1]!)?.kept).toMatchObject({ n: 1, failures: 1 })

      a.db.write = async () => {
        throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })
      }
      await expect(a.writer.append(said('pass', 'own'))).rejects.toThrow('disk I/O error')
      a.db.write = write
      expect(a.book.get('one', ROUTES[1]!)?.kept).toMatchObject({ n: 1, failures: 1 })
      expect(await a.writer.append(said('pass', 'own'))).toMatchObject({ status: 'updated' })
      await b.book.refresh()
      expect(a.book.get('one', ROUTES[1]!)).toEqual(b.book.get('one', ROUTES[1]!))
      a.db.close()
      b.db.close()
    })
  })

  it('counts an outcome for the certificate once its answer is old enough, in the order of answers, whatever is said when and where', async () => {
    const delayed = { ...SETTINGS, feedbackDelayMs: 60_000 }
    const route = { fingerprint: ROUTES[0]!, serve_threshold: null }
    const step = fc.record({
      waits: fc.integer({ min: 0, max: 40_000 }),
      age: fc.integer({ min: 0, max: 90_000 }),
      answer: fc.integer({ min: 0, max: 29 }),
      verdict: fc.constantFrom<Verdict>('pass', 'pass', 'fail', 'abstain'),
      reporter: fc.constantFrom('a', 'b'),
      by: fc.integer({ min: 0, max: 1 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async steps => {
        await inFolder(async file => {
          let at = 1_700_000_000_000
          const now = () => new Date(at)
          const processes = [await processOn(file, delayed, now), await processOn(file, delayed, now)]
          const words = new Map<string, { answeredMs: number; said: Map<string, Verdict> }>()
          const turns = () => [...words.values()].map(({ answeredMs, said }) => ({ answeredMs, to: turnOfWords(said) }))
          const check = async (writer: (typeof processes)[number], isOver: boolean) => {
            await writer.book.refresh()
            const mature = writer.book.get('one', route.fingerprint)?.kept.mature
            if (mature?.upTo === undefined) return
            const { upTo } = mature
            const counted = turns().filter(one => one.to !== undefined && one.answeredMs <= upTo.answeredMs)
            const failed = counted.filter(({ to }) => to === 'fail').length
            expect(mature).toMatchObject({ outcomes: counted.length, failed })
            if (isOver) expect(counted).toHaveLength(turns().filter(({ to }) => to !== undefined).length)
            // No claim stands after so few outcomes, so nothing was capped or set back: a bet is the product of its factors.
            const passes = counted.length - failed
            for (const [i, stake] of [0.2, 0.4, 0.6, 0.8].entries()) {
              const won = (1 + (stake / 0.9) * 0.1) ** passes * (1 - stake) ** failed
              expect(mature.bets.answers.stakes[i]).toBeCloseTo(won, 8)
            }
          }
          for (const { waits, age, answer, verdict, reporter, by } of steps) {
            at += waits
            const id = `answer ${answer}`
            const known = words.get(id) ?? { answeredMs: at - age, said: new Map<string, Verdict>() }
            words.set(id, known)
            known.said.set(reporter, verdict)
            const { answeredMs } = known
            const served = { route, rung: 0, score: null }
            await processes[by]!.writer.append({
              subject: { tenantId: 'one', traceId: id, sessionId: id, answeredMs, served },
              given: { ref: 'x', gate_id: 'outcome', verdict, reporter },
              feedbackId: uuidv7(),
              at: now(),
            })
            await check(processes[1 - by]!, false)
          }
          at += 60_000
          await processes[0]!.writer.age()
          await check(processes[1]!, true)
          for (const { db } of processes) db.close()
        })
      }),
      { numRuns: 25 },
    )
  })
})
