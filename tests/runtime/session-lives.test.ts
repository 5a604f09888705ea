import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { serveRuntime } from '../../runtime/host/node.ts'
import { checkJournal } from '../../shared/sign/testing/check-journal.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Session, TurnReply } from '../../shared/wire/runtime/session.ts'
import { expectWithin } from '../crowding.ts'
import { programEnv } from '../program-env.ts'
import { chatFrames } from '../upstream/answers.ts'
import { type ScriptedUpstream, scriptedUpstream, steppedStream, stream } from '../upstream/scripted.ts'
import { type Received, sseReader } from './sse.ts'

const MAIN = fileURLToPath(new URL('../../runtime/cli/main.ts', import.meta.url))
const KEY = `wb_live_${'l'.repeat(43)}`

let folder: string
let remote: ScriptedUpstream
let ends: (() => unknown)[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-lives-'))
  remote = await scriptedUpstream()
  ends = []
})
afterEach(async () => {
  for (const end of ends) await end()
  await remote.close()
  await rm(folder, { recursive: true, force: true })
})

const vars = () => ({
  PLATFORM_BIND: '127.0.0.1:0',
  PLATFORM_DATA_DIR: folder,
  PLATFORM_LOG_LEVEL: 'error',
  PLATFORM_BOOTSTRAP_KEY: KEY,
  PLATFORM_OUTBOUND_ALLOW: '127.0.0.1',
  PLATFORM_PROVIDER_OPENAI_API_KEY: 'sk-far',
  PLATFORM_PROVIDER_OPENAI_BASE_URL: `${remote.origin}/v1`,
})

/** A runtime in a process of its own, so that it can be killed. */
async function life(): Promise<{ child: ChildProcess; origin: string }> {
  const child = spawn(process.execPath, [MAIN, 'serve'], { env: { ...programEnv, ...vars() } })
  ends.push(() => child.kill('SIGKILL'))
  let said = ''
  return new Promise((resolve, reject) => {
    child.stderr.on('data', chunk => {
      said += chunk
    })
    child.once('close', code => reject(new Error(`it ended with ${code}: ${said}`)))
    child.stdout.on('data', chunk => {
      const origin = /runtime\s+(http:\S+)/.exec(String(chunk))?.[1]
      if (origin !== undefined) resolve({ child, origin })
    })
  })
}

function client(origin: string) {
  const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    fetch(origin + path, {
      method,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  return {
    ask,
    json: async <T>(method: string, path: string, body?: unknown) =>
      (await (await ask(method, path, body)).json()) as T,
    async listen(id: string, lastId?: string) {
      const answer = await ask('GET', `/v1/sessions/${id}/events`, undefined, lastId ? { 'last-event-id': lastId } : {})
      return sseReader(answer.body!)
    },
  }
}

async function upTo(events: { next(): Promise<Received | undefined> }, name: string): Promise<Received[]> {
  const found: Received[] = []
  while (found.at(-1)?.event !== name) {
    const next = await events.next()
    if (next === undefined) throw new Error(`the stream ended before ${name}: ${JSON.stringify(found)}`)
    found.push(next)
  }
  return found
}

const agent = { name: 'friend', manifest: { model: 'openai/gpt-4.1-mini', retry: { backoffMs: 0 } } }

it('ends a turn whose process was killed in the middle of an answer, and tells it from its start', async () => {
  const cut = steppedStream()
  remote.queue(stream(chatFrames(['ze', 'ro'])), cut.script, stream(chatFrames(['The ', 'whole'])))
  const first = await life()
  const before = client(first.origin)
  await before.json('POST', '/v1/agents', agent)
  const { id } = await before.json<Session>('POST', '/v1/sessions', { agentName: 'friend' })
  const whole = await before.listen(id)
  expect(await before.json<TurnReply>('POST', `/v1/sessions/${id}/messages`, { content: 'a' })).toMatchObject({
    text: 'zero',
  })
  await upTo(whole, 'message_completed')
  const key = { 'idempotency-key': 'once' }
  const lost = before.ask('POST', `/v1/sessions/${id}/messages`, { content: 'b' }, key).catch(() => 'lost')
  for (const frame of chatFrames(['Half of ']).slice(0, 2)) await cut.send(frame)
  const [delta] = await upTo(whole, 'message_delta')
  expect(delta?.data).toMatchObject({ seq: 1, delta: 'Half of ' })
  first.child.kill('SIGKILL')
  expect(await lost).toBe('lost')

  const after = client((await life()).origin)
  const resumed = await after.listen(id, delta?.id)
  // A repeat of the call whose answer was lost gets the answer of that very turn.
  const again = await after.ask('POST', `/v1/sessions/${id}/messages`, { content: 'b' }, key)
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  const reply = (await again.json()) as TurnReply
  expect(reply).toMatchObject({ status: 'completed', text: 'The whole', turnId: delta?.data.turnId })
  const rest = await upTo(resumed, 'message_completed')
  expect(rest.map(({ data }) => data.text ?? data.delta).at(-1)).toBe('The whole')
  expect(rest.filter(({ event }) => event === 'message_completed')).toHaveLength(1)
  expect(Number(rest[0]?.id)).toBeGreaterThan(Number(delta?.id))
  const session = await after.json<Session>('GET', `/v1/sessions/${id}`)
  expect(session).toMatchObject({ status: 'active', turnCount: 2 })
  expect(await after.json<Run>('GET', `/v1/runs/${reply.turnId}`)).toMatchObject({ status: 'succeeded' })
  const journal = await after.json<JournalExport>('GET', `/v1/runs/${reply.turnId}/journal`)
  expect(checkJournal(reply.turnId, journal.events)).toMatchObject({ ok: true })
  expect((await after.ask('GET', `/v1/runs/${reply.turnId}/receipt`)).status).toBe(200)
  expect(remote.seen).toHaveLength(3)
  await resumed.stop()
})

it('tells the first piece within 15 ms of the provider', async () => {
  const service = await serveRuntime(vars())
  ends.push(() => service.close())
  const on = client(service.origin)
  await on.json('POST', '/v1/agents', agent)
  const { id } = await on.json<Session>('POST', '/v1/sessions', { agentName: 'friend' })
  const events = await on.listen(id)
  const took: number[] = []
  for (let turn = 0; turn < 40; turn++) {
    const one = steppedStream()
    remote.queue(one.script)
    const reply = on.json('POST', `/v1/sessions/${id}/messages`, { content: 'go' })
    const [opening, piece, ...rest] = chatFrames(['x', 'y'])
    await one.send(opening!)
    const from = performance.now()
    await one.send(piece!)
    await upTo(events, 'message_delta')
    took.push(performance.now() - from)
    for (const frame of rest) await one.send(frame)
    await one.end()
    await upTo(events, 'message_completed')
    await reply
  }
  took.sort((a, b) => a - b)
  console.log(`first piece after ${took[20]!.toFixed(2)} ms (median of 40), ${took[37]!.toFixed(2)} ms (95 %)`)
  expectWithin(took[20]!, 15)
  await events.stop()
})
