import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodeCalls } from '../../../router/host/node-exchange.ts'
import { undiciTransport } from '../../../router/host/undici-transport.ts'
import { createRouter } from '../../../router/router.ts'
import { nativeSha256 } from '../../../shared/host/native-sha256.ts'
import { openDb } from '../../../shared/host/open-libsql.ts'
import { listen } from '../../../shared/host/serve.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { answer, scriptedUpstream } from '../../../tests/upstream/scripted.ts'
import { TASKS } from './tasks.ts'

/** The ladder, or one of its models alone. */
export const ROUTES = ['cascade', 'cheap', 'top'] as const
export type RouteName = (typeof ROUTES)[number]

/** How many tasks are on their way at once. */
const WIDTH = 32

const CONFIG = (origin: string) => `version = 1
price = [
  { model = "mock/cheap", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "mock/top", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "mock", dialect = "messages", base_url = "${origin}", auth = "none" }]
gate = [{ id = "tests", kind = "function", name = "tests" }]
defaults = { mode = "enforce", gates = ["tests"] }
[[route]]
match = { task = "cheap" }
ladder = ["mock/cheap"]
[[route]]
match = { task = "top" }
ladder = ["mock/top"]
[[route]]
match = { task = "cascade" }
ladder = ["mock/cheap", "mock/top"]
`
export const ROUTE_IX: Readonly<Record<RouteName, number>> = { cheap: 0, top: 1, cascade: 2 }

export interface ServedTasks {
  origin: string
  db: Db
  /** All tasks through one route, each answer reported on: in order, a few at once. */
  run(route: RouteName): Promise<void>
  /** Flushes and stops the router; the store stays open for reading. */
  stop(): Promise<void>
  close(): Promise<void>
}

/** A mock provider that answers the tasks, and a router on a socket in front of it with its store in a file. */
export async function serveTasks(): Promise<ServedTasks> {
  const upstream = await scriptedUpstream()
  upstream.always((response, seen, request) => {
    const { model, messages } = JSON.parse(String(seen.body)) as {
      model: 'cheap' | 'top'
      messages: { content: string }[]
    }
    const task = Number(messages[0]!.content.replace('task ', ''))
    const { score, input, output } = TASKS[task]![model]
    const body = {
      id: `msg_${model}_${task}`,
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: JSON.stringify({ score }) }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: input, output_tokens: output },
    }
    // Nothing of the calls is looked at afterwards.
    upstream.seen.length = 0
    return answer(200, JSON.stringify(body))(response, seen, request)
  })
  const folder = await mkdtemp(join(tmpdir(), 'waybill-cascade-'))
  const db = await openDb(join(folder, 'router.db'), { synchronous: 'normal' })
  const transport = undiciTransport({ connectMs: 5000 })
  const tests = ({ candidate }: { candidate: string }) => {
    const { score } = JSON.parse(candidate) as { score: number }
    return { verdict: score === 1 ? ('pass' as const) : ('fail' as const), score }
  }
  const router = createRouter({
    config: CONFIG(upstream.origin),
    gates: { functions: { tests } },
    db,
    transport,
    sha256: nativeSha256,
  })
  await router.ready()
  const server = await listen({
    bind: { host: '127.0.0.1', port: 0 },
    fetch: router.fetch,
    direct: nodeCalls().accept(router.handleCall()),
    bodyMs: 60_000,
  })

  async function ask(route: RouteName, task: number): Promise<void> {
    const asked = await post('/v1/messages', {
      route,
      body: { model: 'auto', max_tokens: 1000, messages: [{ role: 'user', content: `task ${task}` }] },
    })
    const rung = asked.headers.get('x-router-served-rung')
    if (asked.status !== 200) throw new Error(`task ${task} was answered with ${asked.status}: ${await asked.text()}`)
    await asked.arrayBuffer()
    const { cheap, top } = TASKS[task]!
    const { right } = route === 'top' || rung === '1' ? top : cheap
    const request_id = asked.headers.get('x-router-trace-id')
    const told = await post('/v1/feedback', { route, body: { request_id, outcome: right ? 'correct' : 'incorrect' } })
    if (told.status !== 202)
      throw new Error(`feedback on task ${task} was answered with ${told.status}: ${await told.text()}`)
    await told.arrayBuffer()
  }

  function post(path: string, { route, body }: { route: RouteName; body: object }): Promise<Response> {
    const headers = { 'content-type': 'application/json', 'x-router-task': route }
    return fetch(server.origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
  }

  let stopped = false
  async function stop() {
    if (stopped) return
    stopped = true
    await server.close(5000)
    await router.close()
  }
  return {
    origin: server.origin,
    db,
    async run(route) {
      let next = 0
      const worker = async () => {
        while (next < TASKS.length) await ask(route, next++)
      }
      await Promise.all(Array.from({ length: WIDTH }, worker))
    },
    stop,
    async close() {
      await stop()
      db.close()
      await upstream.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
