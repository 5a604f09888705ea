import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { capabilities } from '../../shared/wire/router/capabilities.ts'
import { programEnv } from '../../tests/program-env.ts'
import { messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { createRouter } from '../router.ts'
import type { RouteReport } from './calibrate-run.ts'

const main = new URL('main.ts', import.meta.url).pathname
const CONFIG = (origin: string) => `version = 1
calibration = { feedback_delay_s = 60 }
price = [{ model = "up/one", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "up", dialect = "messages", base_url = "${origin}", auth = "none" }]
gate = [{ id = "graded", kind = "function", name = "graded" }]
[[route]]
match = { task = "watch" }
mode = "observe"
[[route]]
match = {}
mode = "enforce"
ladder = ["up/one"]
gates = ["graded"]
`

let folder: string
let file: string

function calibrate(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [main, 'calibrate', ...args], {
    env: { ...programEnv, ROUTER_DB: file },
    cwd: folder,
  })
  let [out, err] = ['', '']
  child.stdout.on('data', chunk => (out += chunk))
  child.stderr.on('data', chunk => (err += chunk))
  return new Promise(resolve => child.once('close', code => resolve({ code, out, err })))
}
const reports = async (...args: string[]) =>
  (JSON.parse((await calibrate('--json', ...args)).out) as { routes: RouteReport[] }).routes

describe('router calibrate', () => {
  let upstream: Awaited<ReturnType<typeof scriptedUpstream>>
  let router: ReturnType<typeof createRouter>
  let db: Awaited<ReturnType<typeof openDb>>
  const get = async (path: string) => (await router.fetch(new Request(`http://router${path}`))).json()
  const threshold = async () => capabilities.parse(await get('/v1/capabilities')).calibration[0]

  async function tell(score: number, outcome: 'correct' | 'incorrect') {
    upstream.queue(answer(200, JSON.stringify(messagesAnswer(String(score), 'one'))))
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
    const ask = { model: 'auto', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
    const got = await router.fetch(new Request('http://router/v1/messages', { ...init, body: JSON.stringify(ask) }))
    await got.text()
    await router.feedback({ request_id: got.headers.get('x-router-trace-id')!, outcome })
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-calibrate-'))
    file = join(folder, 'router.db')
    upstream = await scriptedUpstream()
    db = await openDb(file)
    router = createRouter({
      db,
      config: CONFIG(upstream.origin),
      gates: {
        functions: { graded: ({ candidate }) => ({ verdict: 'pass', score: Number(candidate) }) },
      },
    })
    await router.ready()
  })
  afterAll(async () => {
    await router?.close()
    db?.close()
    await upstream?.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('has nothing to say before the first outcome', async () => {
    expect(await calibrate()).toEqual({
      code: 0,
      out: 'not certified: n=0, no outcome of a routed answer was reported yet\n',
      err: '',
    })
    expect((await calibrate('--require-certified')).code).toBe(1)
  })

  it('prints a table for each score, and certifies only what holds', async () => {
    for (let i = 0; i < 40; i++) await tell(1, 'correct')
    for (let i = 0; i < 10; i++) await tell(0.25, i < 6 ? 'incorrect' : 'correct')
    const young = await calibrate('--route', '1')
    expect(young.out).toContain('default, route 1: not certified: n=0, need 30\n')
    expect(young.out).toContain(
      'left out, 50 answers younger than 1 minute (feedback_delay_s): a failure may still be reported\n',
    )
    await db.execute('update outcomes set answered_ms = answered_ms - 60000')
    const { code, out } = await calibrate('--route', '1')
    expect(out).not.toContain('left out')
    expect(code).toBe(0)
    expect(out).toMatch(
      /^default, route 1: certified: of answers that score 1 or more, at most 10 % fail, at 95 % confidence for this one look, if none depends on another \(n=40, failed 0, p=0\.01478\)\n/,
    )
    expect(out).toMatch(/^1 +40 +0 +0\.00000 +0\.19351 +0\.01478 +passed$/m)
    expect(out).toMatch(/^0\.25 +50 +6 +0\.12000 +0\.29308 +0\.7702 +failed$/m)
    const [report] = await reports()
    expect(report).toMatchObject({ route_ix: 1, tenant_id: 'default', threshold: 1, pairs: 50, pinned: null })
    expect((await reports('--alpha', '0.3'))[0]?.threshold).toBe(0.25)
    expect((await reports('--min-n', '41'))[0]).toMatchObject({ certified: false, threshold: null })
    expect((await reports('--method', 'conformal'))[0]?.text).toBe('not certified: n=40, need 150')
    expect((await calibrate('--method', 'conformal', '--require-certified')).code).toBe(1)
    const kept = await calibrate('--holdout', '0.2')
    expect(kept.out).toContain('kept apart, 10 answers: none of them reach the threshold')
    expect(await reports('--tenant', 'nobody')).toEqual([])
  })

  it('pins what is certified, the running router serves by it, and it adapts again when the pin is taken back', async () => {
    expect((await threshold())?.method).toBe('aci')
    expect((await calibrate('--route', '1', '--apply', '--min-n', '41')).out).not.toContain('pinned')
    const applied = await calibrate('--route', '1', '--apply', '--require-certified')
    expect([applied.code, applied.out]).toEqual([0, expect.stringContaining('\npinned at 1\n')])
    expect(await threshold()).toMatchObject({ method: 'fixed', threshold: 1, state: 'not_certified' })
    // What is reported meanwhile changes nothing of the pin, and nothing is lost.
    await tell(1, 'correct')
    expect(await threshold()).toMatchObject({ threshold: 1, n: 51 })
    expect((await calibrate('--unpin')).code).toBe(0)
    expect(await threshold()).toMatchObject({ method: 'aci', n: 51 })
  })

  it.each([
    [['--route', '7'], 'has the routes 0 to 1; --route 7 names none of them'],
    [['--alpha', '0.9'], '--alpha takes a number from 0.001 to 0.5, not 0.9'],
    [['--delta', 'x'], '--delta takes'],
    [['--min-n', '0'], '--min-n takes a whole number from 1'],
    [['--holdout', '1'], '--holdout takes a number from 0 to 0.9'],
    [['--method', 'aci'], '--method takes ltt, conformal, eprocess, not aci'],
    [['--apply', '--unpin'], 'not both'],
    [['--apply', '--method', 'conformal'], '--apply pins what method ltt certifies'],
    [['--nonsense'], 'nonsense'],
  ])('refuses %j with exit code 2', async (args, message) => {
    const { code, out, err } = await calibrate(...args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(message)
  })

  it('ends with 3 where there is no store', async () => {
    const { code, err } = await calibrate('--db', join(folder, 'none.db'))
    expect([code, err]).toEqual([3, expect.stringMatching(/There is no database .* ROUTER_DB or with --db/)])
    expect((await calibrate('--db', join(folder, 'none.db'), '--apply')).code).toBe(3)
    expect(await readdir(folder)).not.toContain('none.db')
  })

  it('certifies no threshold that would serve what was passed over so far', async () => {
    const store = join(folder, 'ladder.db')
    const own = await openDb(store)
    const ladder = CONFIG(upstream.origin)
      .replace('price = [', 'price = [{ model = "up/two", input_per_mtok = 2, output_per_mtok = 9 }, ')
      .replace('ladder = ["up/one"]', 'ladder = ["up/one", "up/two"]\nserve_threshold = 0.5')
    const functions = {
      graded: ({ candidate }: { candidate: string }) => ({ verdict: 'pass' as const, score: Number(candidate) }),
    }
    const other = createRouter({ db: own, config: ladder, gates: { functions } })
    await other.ready()
    const body = JSON.stringify({ model: 'auto', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] })
    const headers = { 'content-type': 'application/json' }
    for (let i = 0; i < 80; i++) {
      // Every second answer of the cheap rung scores 0.3 and climbs; the dear one says the same, and is right.
      const scores = i % 2 === 0 ? ['1'] : ['0.3', '0.3']
      upstream.queue(...scores.map(score => answer(200, JSON.stringify(messagesAnswer(score, 'one')))))
      const got = await other.fetch(new Request('http://router/v1/messages', { method: 'POST', headers, body }))
      await got.text()
      await other.feedback({ request_id: got.headers.get('x-router-trace-id')!, outcome: 'correct' })
    }
    await other.close()
    await own.execute('update outcomes set answered_ms = answered_ms - 60000')
    own.close()
    const [report] = await reports('--db', store)
    expect(report).toMatchObject({ pairs: 80, passed_over: 40, threshold: 1 })
    expect((await calibrate('--db', store)).out).toContain(
      'before 40 of them an answer of a lower rung was passed over',
    )
  })
})
