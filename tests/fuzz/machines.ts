import fc from 'fast-check'
import { type Target, target } from './target.ts'
import { type Limits, type World, world } from './world.ts'

/** One action; the numbers choose among what there is when it is done. */
type Move = readonly [verb: string, a: number, b: number]
interface Story {
  limits: Limits
  moves: readonly Move[]
}

const PROMPTS = [
  ...[
    'hello',
    'wait',
    'signal',
    'ask',
    'both',
    'hold',
    'boom',
    'ask wait ask',
    'hold ask',
    'wait hold',
    'signal signal',
  ],
  ...['hold hold hold', 'both boom', 'wait wait wait wait'],
]
const STRIDES = [1000, 20_000, 90_000, 3_600_000, 90_000_000]
const CRONS = ['*/5 * * * *', '0 * * * *', '30 2 * * *', '* * * * *']

const pick = <T>(from: readonly T[], n: number): T => from[n % from.length]!

async function idOf(on: World, sql: string, n: number): Promise<string | undefined> {
  const rows = await on.rows(sql)
  return rows.length === 0 ? undefined : String(pick(rows, n).id)
}

const RUNS = 'select id from runs order by created_ms desc, id limit 12'
const SESSIONS = 'select id from sessions order by created_ms desc, id limit 6'
const SCHEDULES = 'select id from schedules order by id limit 6'
const APPROVALS = 'select id from approvals order by created_ms desc, id limit 8'

const onOne =
  (sql: string, act: (on: World, id: string, b: number) => Promise<unknown>) =>
  async (on: World, a: number, b: number): Promise<void> => {
    const id = await idOf(on, sql, a)
    if (id !== undefined) await act(on, id, b)
  }

/** Only one of several decisions made at once may be told that it was taken. */
async function decideAtOnce(on: World, id: string, b: number): Promise<void> {
  const words = ['approve', 'reject', 'approve'].slice(b % 2)
  const said = await Promise.all(words.map(word => on.call('POST', `/v1/approvals/${id}/${word}`, decision(word))))
  const taken = said.filter(({ status }) => status === 200).length
  if (taken > 1) on.wrong.push(`approval ${id} was decided ${taken} times`)
}
const decision = (word: string) => (word === 'approve' ? { output: 7 } : { comment: 'no' })

async function sayAtOnce(on: World, id: string, b: number): Promise<void> {
  const said = await Promise.all(
    [b, b + 3].map(n => on.call('POST', `/v1/sessions/${id}/messages`, { content: pick(PROMPTS, n) })),
  )
  const [one, other] = said.map(({ body }) => body.turnId)
  if (one !== undefined && one === other) on.wrong.push(`session ${id} gave one turn to two messages`)
}

const VERBS: Record<string, (on: World, a: number, b: number) => Promise<unknown>> = {
  run: (on, a, b) =>
    on.call('POST', '/v1/runs', { agentName: b % 3 === 0 ? 'careful' : 'worker', input: { prompt: pick(PROMPTS, a) } }),
  runs: (on, a) =>
    Promise.all(
      [a, a + 1, a + 5].map(n =>
        on.call('POST', '/v1/runs', { agentName: 'worker', input: { prompt: pick(PROMPTS, n) } }),
      ),
    ),
  cancel: onOne(RUNS, (on, id) => on.call('POST', `/v1/runs/${id}/cancel`, {})),
  cancelTwice: onOne(RUNS, (on, id) =>
    Promise.all([1, 2].map(() => on.call('POST', `/v1/runs/${id}/cancel`, { reason: 'twice' }))),
  ),
  signal: onOne(RUNS, (on, id) => on.call('POST', `/v1/runs/${id}/signals/go`, { value: 1 })),
  retry: onOne(RUNS, (on, id) => on.call('POST', `/v1/runs/${id}/retry`, {})),
  remove: onOne(RUNS, (on, id) => on.call('DELETE', `/v1/runs/${id}`)),
  approve: onOne(APPROVALS, (on, id) => on.call('POST', `/v1/approvals/${id}/approve`, decision('approve'))),
  reject: onOne(APPROVALS, (on, id) => on.call('POST', `/v1/approvals/${id}/reject`, decision('reject'))),
  decideAtOnce: onOne(APPROVALS, decideAtOnce),
  approveAndCancel: onOne(APPROVALS, async (on, id) => {
    const [row] = await on.rows(`select run_id from approvals where id = '${id}'`)
    await Promise.all([
      on.call('POST', `/v1/approvals/${id}/approve`, decision('approve')),
      on.call('POST', `/v1/runs/${row?.run_id}/cancel`, {}),
    ])
  }),
  open: on => on.call('POST', '/v1/sessions', { agentName: 'worker' }),
  say: onOne(SESSIONS, (on, id, b) => on.call('POST', `/v1/sessions/${id}/messages`, { content: pick(PROMPTS, b) })),
  sayAtOnce: onOne(SESSIONS, sayAtOnce),
  sayAndStop: onOne(SESSIONS, (on, id, b) =>
    Promise.all([
      on.call('POST', `/v1/sessions/${id}/messages`, { content: pick(PROMPTS, b) }),
      on.call('POST', `/v1/sessions/${id}/stop`, {}),
    ]),
  ),
  stop: onOne(SESSIONS, (on, id) => on.call('POST', `/v1/sessions/${id}/stop`, {})),
  drop: onOne(SESSIONS, (on, id) => on.call('DELETE', `/v1/sessions/${id}`)),
  plan: (on, a, b) =>
    on.call('POST', '/v1/schedules', {
      agentName: 'worker',
      cronExpr: pick(CRONS, a),
      input: { prompt: pick(PROMPTS, b) },
      overlap: pick(['allow', 'skip', 'queue'], b),
      catchUp: pick(['one', 'none', 'all'], a + b),
      timezone: pick(['UTC', 'Europe/Berlin', 'America/New_York'], b),
    }),
  pause: onOne(SCHEDULES, (on, id) => on.call('POST', `/v1/schedules/${id}/pause`, {})),
  resume: onOne(SCHEDULES, (on, id) => on.call('POST', `/v1/schedules/${id}/resume`, {})),
  replan: onOne(SCHEDULES, (on, id, b) => on.call('PATCH', `/v1/schedules/${id}`, { cronExpr: pick(CRONS, b) })),
  fire: onOne(SCHEDULES, (on, id) => on.call('POST', `/v1/schedules/${id}/run`, {})),
  unplan: onOne(SCHEDULES, (on, id) => on.call('DELETE', `/v1/schedules/${id}`)),
  async later(on, a) {
    on.clock.advance(pick(STRIDES, a))
    await Promise.all([on.due(), on.due()])
  },
  letGo: async on => on.letGo(),
  next: (on, a) => on.next(pick(['closed', 'killed', 'killed unseen'] as const, a)),
}

/** A window has one run, and a run one window; a schedule that waits for its run never has two of its own windows open. */
async function checkWindows(on: World): Promise<void> {
  const twice = await on.rows(
    'select run_id id from schedule_fires where run_id is not null group by run_id having count(*) > 1',
  )
  const lost = await on.rows(`select schedule_id id from schedule_fires where outcome = 'started' and run_id is null`)
  const overlapping = await on.rows(`select s.id from schedules s join schedule_fires f on f.schedule_id = s.id
    join runs r on r.id = f.run_id where s.overlap <> 'allow' and r.status in ('queued', 'running', 'waiting')
    group by s.id having count(*) > 1`)
  for (const { id } of [...twice, ...lost, ...overlapping])
    throw new Error(`the windows of ${id} have not one run each`)
}

async function play({ limits, moves }: Story): Promise<void> {
  const on = await world(limits)
  try {
    for (const [verb, a, b] of moves) {
      await VERBS[verb]!(on, a, b)
      await on.check()
      await checkWindows(on)
    }
    // The end of every story: what a death left is taken up, and what was proved is checked.
    on.clock.advance(61_000)
    await on.due()
    await on.check()
    await on.checkChains()
  } finally {
    await on.close()
  }
}

function machine(name: string, verbs: Record<string, number>, limits: fc.Arbitrary<Limits> = fc.constant({})): Target {
  const weighed = Object.entries(verbs).map(([verb, weight]) => ({ weight, arbitrary: fc.constant(verb) }))
  const move = fc.tuple(fc.oneof(...weighed), fc.nat(23), fc.nat(23))
  return target<Story>({
    name,
    cases: fc.record({ limits, moves: fc.array(move, { minLength: 2, maxLength: 14 }) }),
    attempt: play,
  })
}

const TIME = { later: 4, letGo: 2, next: 2 }
const maybe = <T>(from: fc.Arbitrary<T>) => fc.option(from, { nil: undefined })

/** The state machines of the runtime, each with what people, programs and time do to it. */
export const machines: Target[] = [
  machine('run', { ...TIME, run: 8, runs: 1, cancel: 3, cancelTwice: 1, signal: 3, retry: 1, remove: 1, approve: 2 }),
  machine('session', {
    ...TIME,
    open: 4,
    say: 8,
    sayAtOnce: 3,
    sayAndStop: 1,
    stop: 1,
    drop: 1,
    approve: 1,
    cancel: 1,
  }),
  machine('approval', { ...TIME, run: 6, approve: 4, reject: 3, decideAtOnce: 3, approveAndCancel: 2, cancel: 1 }),
  machine(
    'budget',
    { ...TIME, run: 8, runs: 4, cancel: 2, approve: 1, signal: 1, open: 1, say: 2, plan: 1 },
    fc.record({
      maxCostUsdPerDay: maybe(fc.integer({ min: 1, max: 40 }).map(n => n / 20_000)),
      maxTokensPerDay: maybe(fc.integer({ min: 100, max: 8000 })),
      maxRunsPerDay: maybe(fc.integer({ min: 0, max: 9 })),
    }),
  ),
  machine('schedule', {
    ...TIME,
    later: 9,
    plan: 6,
    pause: 1,
    resume: 2,
    replan: 1,
    fire: 1,
    unplan: 1,
    cancel: 2,
    approve: 1,
  }),
]
