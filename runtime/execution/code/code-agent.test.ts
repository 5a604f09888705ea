import { afterEach, describe, expect, it } from 'vitest'
import type { ManifestInput } from '../../../shared/wire/runtime/manifest.ts'
import type { Command, CommandEnd, Sandboxes } from '../sandbox/sandboxes.ts'
import { engineFixture, type FixtureOptions, says, script } from '../testing/engine-fixture.ts'

type Ask = (path: string, body?: unknown) => Promise<{ status: number; body: Record<string, unknown> }>
type Program = (ask: Ask, command: Command) => Promise<Partial<CommandEnd> | undefined>

/** A sandbox whose program is a function of the test; it speaks to the protocol as one inside a machine would. */
function sandboxesOf(program: Program, kept: string[] = []): Sandboxes {
  return {
    offered: async () => [{ backend: 'qemu', accel: 'tcg', programs: new Set() }],
    known: () => [],
    forget: async runId => void kept.push(`forgot ${runId}`),
    async open({ offered }) {
      let answer: (request: Request) => Promise<Response> = () => Promise.reject(new Error('nobody answers'))
      return {
        offered,
        kernelRelease: '6.1.0',
        async serve(_port, given) {
          answer = given
        },
        async run(command, { signal }) {
          const token = command.env?.WAYBILL_STEP_TOKEN
          const ask: Ask = async (path, body) => {
            signal.throwIfAborted()
            const request = new Request(`${command.env?.WAYBILL_STEP_URL}${path}`, {
              headers: { authorization: `Bearer ${token}` },
              ...(body !== undefined && {
                method: 'POST',
                body: typeof body === 'string' ? body : JSON.stringify(body),
              }),
            })
            const response = await answer(request)
            signal.throwIfAborted()
            return { status: response.status, body: (await response.json()) as Record<string, unknown> }
          }
          const gone = new Promise<never>((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason), { once: true })
          })
          const end = await Promise.race([program(ask, command), gone])
          return { stdout: '', stderr: '', exitCode: 0, ...end }
        },
        pipe: () => Promise.reject(new Error('this test speaks with no program')),
        keep: async () => void kept.push('kept'),
        writeFile: async () => undefined,
        readFile: async () => new Uint8Array(),
        listFiles: async () => [],
        reached: () => [],
        close: async () => undefined,
      }
    },
  }
}

/** What a client file does with a step. */
async function step(ask: Ask, name: string, input: unknown, make: () => unknown): Promise<unknown> {
  const { body } = await ask('/v0/steps', { name, input })
  if (body.cached) return body.output
  const output = make()
  await ask(`/v0/steps/${body.stepId}/complete`, { output })
  return output
}

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function fixture(program: Program, manifest: ManifestInput = {}, options: Partial<FixtureOptions> = {}) {
  const kept: string[] = []
  const made = await engineFixture({
    manifest: { isolation: 'qemu', entrypoint: { command: 'program' }, ...manifest },
    sandboxes: sandboxesOf(program, kept),
    ...options,
  })
  open.push(made)
  await made.engine.start()
  return { ...made, kept }
}

async function ran(program: Program, manifest: ManifestInput = {}, options: Partial<FixtureOptions> = {}) {
  const made = await fixture(program, manifest, options)
  const id = await made.create({ prompt: 'go', n: 3 })
  made.engine.wake()
  const run = await made.until(id)
  return { ...made, id, run, events: await made.runs.events(id, 1, 1000) }
}

const idsOf = (events: { kind: string; stepId: string }[], kind = 'step_completed') =>
  events.filter(event => event.kind === kind).map(({ stepId }) => stepId)

describe('a code agent', () => {
  it('reads its input, makes steps, asks the model, and finishes with its output', async () => {
    const { run, events, kept } = await ran(
      async ask => {
        const { input } = (await ask('/v0/input')).body
        const a = await step(ask, 'fetch', { page: 1 }, () => ({ rows: 2 }))
        const said = await ask('/v0/model', { prompt: 'how many?' })
        await ask('/v0/finish', { output: { input, a, said: said.body.text } })
        return undefined
      },
      {},
      { ask: script([says('two')]) },
    )
    expect(run).toMatchObject({
      status: 'succeeded',
      output: { input: { prompt: 'go', n: 3 }, a: { rows: 2 }, said: 'two' },
      tokensIn: 10,
      tokensOut: 2,
      isolation: { used: 'qemu' },
    })
    expect(idsOf(events)).toEqual(['code-fetch-1', 'model-2', 'entrypoint'])
    expect(events.find(({ stepId }) => stepId === 'entrypoint')?.kind).toBe('step_started')
    expect(events.findLast(({ stepId }) => stepId === 'entrypoint')?.meta).toMatchObject({
      backend: 'qemu',
      accel: 'tcg',
      kernelRelease: '6.1.0',
    })
    // Before the step's result was on record.
    expect(kept[0]).toBe('kept')
  })

  it('that says nothing of the protocol has what it printed as its result', async () => {
    expect((await ran(async () => ({ stdout: 'hello\n' }))).run).toMatchObject({ output: { result: 'hello' } })
  })

  it('calls only tools that the manifest lists, with arguments that fit', async () => {
    const seen: unknown[] = []
    const { run } = await ran(
      async ask => {
        for (const [name, given] of [
          ['http_request', { url: 'https://example.com' }],
          ['wait', { seconds: 'x' }],
          ['wait', { seconds: 0 }],
        ] as const) {
          seen.push(await ask('/v0/tool', { name, arguments: given }))
        }
        await ask('/v0/finish', { output: 'done' })
        return undefined
      },
      { tools: ['wait'] },
    )
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
    expect(seen).toMatchObject([
      { status: 502, body: { error: 'there is no tool called http_request' } },
      { status: 502, body: { error: expect.stringContaining('do not fit') } },
      { status: 200, body: { output: { waitedUntil: expect.any(String) } } },
    ])
  })

  it('begins again after a wait, is given what is on record, and makes each step once', async () => {
    let lives = 0
    let effects = 0
    const made = await fixture(async ask => {
      lives++
      const one = await step(ask, 'one', null, () => ++effects)
      const { body } = await ask('/v0/approval', { prompt: 'Go on?' })
      const two = await step(ask, 'two', one, () => ++effects)
      await ask('/v0/finish', { output: { one, two, body } })
      return undefined
    })
    const id = await made.create({ prompt: 'go' })
    made.engine.wake()
    await made.until(id, ['waiting'])
    await made.db.execute({
      sql: "update approvals set status = 'approved', decided_by = 'test', comment = 'yes' where run_id = ?",
      args: [id],
    })
    await made.db.execute({ sql: 'update runs set due_ms = 0 where id = ?', args: [id] })
    made.engine.wake()
    expect(await made.until(id)).toMatchObject({
      status: 'succeeded',
      output: { one: 1, two: 2, body: { approved: true, comment: 'yes' } },
    })
    expect([lives, effects]).toEqual([2, 2])
  })

  it.each<[string, (life: number, ask: Ask) => Promise<unknown>]>([
    ['another input', (life, ask) => step(ask, 'one', { life }, () => 1)],
    ['another name', (life, ask) => step(ask, `in-life-${life}`, null, () => 1)],
    [
      'another kind of call',
      (life, ask) => (life === 1 ? step(ask, 'one', null, () => 1) : ask('/v0/sleep', { seconds: 0 })),
    ],
    [
      'no call any more',
      async (life, ask) => (life === 1 ? step(ask, 'one', null, () => 1) : ask('/v0/finish', { output: 1 })),
    ],
  ])('that asks for something else when it begins again (%s) ends the run', async (_what, first) => {
    let life = 0
    const { run, events } = await ran(async ask => {
      await first(++life, ask)
      await ask('/v0/sleep', { seconds: 1.2 })
      await ask('/v0/finish', { output: 'never' })
      return undefined
    })
    expect(run).toMatchObject({ status: 'failed', error: { code: 'nondeterministic_replay' } })
    expect(life).toBe(2)
    expect(idsOf(events).filter(id => id.startsWith('code-'))).toHaveLength(1)
  })

  it('has a failed attempt of a step repeated under a new key, and sees the failure once there is no more', async () => {
    const keys: unknown[] = []
    const { run, events } = await ran(
      async ask => {
        let { body } = await ask('/v0/steps', { name: 'flaky' })
        for (;;) {
          keys.push(body.idempotencyKey)
          body = (await ask(`/v0/steps/${body.stepId ?? 'code-flaky-1'}/fail`, { error: 'not yet', transient: true }))
            .body
          if (!body.retry) break
        }
        return { exitCode: 1 }
      },
      { retry: { maxAttempts: 3, backoffMs: 1 } },
    )
    expect(run.status).toBe('failed')
    expect(keys.map(key => String(key).split(':').slice(1).join(':'))).toEqual([
      ...['code-flaky-1:1', 'code-flaky-1:2', 'code-flaky-1:3'],
    ])
    expect(idsOf(events, 'step_retrying')).toHaveLength(2)
  })

  it('that does not catch the failure of a call fails with what that call was', async () => {
    const { run } = await ran(
      async ask => {
        await ask('/v0/tool', { name: 'wait', arguments: { seconds: -1 } })
        return { exitCode: 1, stderr: 'Traceback' }
      },
      { tools: ['wait'] },
    )
    expect(run).toMatchObject({
      status: 'failed',
      error: { code: 'entrypoint_failed', message: expect.stringContaining('Traceback') },
    })
    const failing = await ran(
      async ask => {
        await ask('/v0/model', { prompt: 'x' })
        return { exitCode: 1 }
      },
      {},
      { ask: () => Promise.reject(new Error('no')) },
    )
    expect(failing.run).toMatchObject({ error: { code: 'model_error', stepId: 'model-1' } })
  })
})

describe('a program that lies', () => {
  it('or sends a number beyond 2^53 that would be changed gets its place, and goes on', async () => {
    const seen: unknown[] = []
    const { run } = await ran(
      async ask => {
        const big = '1234567890123456789'
        const { body } = await ask('/v0/steps', { name: 'x' })
        seen.push(await ask(`/v0/steps/${body.stepId}/complete`, `{"output": {"ids": [1, ${big}]}}`))
        seen.push(await ask(`/v0/steps/${body.stepId}/complete`, { output: { ids: [1, big] } }))
        seen.push(await ask('/v0/tool', `{"name": "wait", "arguments": {"seconds": ${big}}}`))
        await ask('/v0/finish', '{"output": 9007199254740992}')
        return undefined
      },
      { tools: ['wait'] },
    )
    const refused = (at: string) => ({
      status: 400,
      body: { error: expect.stringContaining(`the number 1234567890123456789 at ${at} is beyond 2^53`) },
    })
    expect(seen).toMatchObject([refused('/output/ids/1'), { status: 200 }, refused('/arguments/seconds')])
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 2 ** 53 } })
  })

  it('is refused where it asks for what is not there, and goes on', async () => {
    const seen: number[] = []
    const { run } = await ran(async ask => {
      const say = async (path: string, body?: unknown) => seen.push((await ask(path, body)).status)
      await say('/v0/steps/code-x-1/complete', { output: 1 })
      await say('/v0/steps', { name: '../x' })
      await say('/v0/secrets', {})
      await say('/v0/model', { prompt: 'a', messages: [] })
      const { body } = await ask('/v0/steps', { name: 'x' })
      await say('/v0/steps', { name: 'y' })
      await say('/v0/sleep', { seconds: 0 })
      await say('/v0/finish', {})
      await say(`/v0/steps/${body.stepId}/complete`, { output: 1 })
      await say(`/v0/steps/${body.stepId}/complete`, { output: 2 })
      let deep: unknown = 1
      for (let at = 0; at < 300; at++) deep = [deep]
      await say('/v0/finish', { output: deep })
      await say('/v0/finish', { output: 'fine' })
      return undefined
    })
    expect(seen.slice(0, 11)).toEqual([409, 400, 404, 400, 409, 409, 409, 200, 409, 400, 200])
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 'fine' } })
  })

  it('is ended when it floods the protocol', async () => {
    const { run } = await ran(
      async ask => {
        for (;;) await ask('/v0/nothing', {})
      },
      { limits: { maxSteps: 1 } },
    )
    expect(run).toMatchObject({ status: 'failed', error: { code: 'limit_exceeded' } })
  })

  it('is ended at its limit of steps, and at its time', async () => {
    const many = await ran(
      async ask => {
        for (let at = 0; ; at++) await step(ask, 'one', at, () => at)
      },
      { limits: { maxSteps: 3 } },
    )
    expect(many.run).toMatchObject({ status: 'failed', error: { code: 'limit_exceeded' } })
    const slow = await ran(() => new Promise(() => undefined), { limits: { timeoutSeconds: 1 } })
    expect(slow.run).toMatchObject({ status: 'failed', error: { code: 'timeout' } })
  })

  it.each<[string, Partial<CommandEnd>, RegExp]>([
    ['a limit', { limit: { name: 'pids', detail: 'no more processes' } }, /limit of pids: no more processes/],
    ['a signal', { signal: 'SIGSEGV' }, /SIGSEGV/],
    ['an exit code', { exitCode: 7, stderr: 'boom' }, /exit code 7: boom/],
    [
      'an exit code, with a report whose cause stands before a long stack',
      {
        exitCode: 1,
        stderr: `${'noise\n'.repeat(500)}SyntaxError: no import\n${'    at load (node:internal)\n'.repeat(35)}`,
      },
      /exit code 1: noise\n(noise\n)*SyntaxError: no import\n/,
    ],
  ])('and ends by %s fails with it', async (_what, end, message) => {
    const { run } = await ran(async () => end)
    expect(run).toMatchObject({
      status: 'failed',
      error: { code: 'entrypoint_failed', message: expect.stringMatching(message) },
    })
  })

  it('and finishes with what the schema does not allow fails', async () => {
    const { run } = await ran(
      async ask => {
        await ask('/v0/finish', { output: { n: 'x' } })
        return undefined
      },
      { outputSchema: { type: 'object', properties: { n: { type: 'number' } } } },
    )
    expect(run).toMatchObject({ status: 'failed', error: { code: 'output_invalid' } })
  })
})
