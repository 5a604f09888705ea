import { type ChildProcess, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent } from 'undici'
import { expect } from 'vitest'
import { eventually } from '../eventually.ts'
import { programEnv } from '../program-env.ts'

const ANSWER = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'cheap',
  content: [{ type: 'text', text: 'hello there' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 10, output_tokens: 5 },
}
const ASK = { model: 'auto', max_tokens: 64, messages: [{ role: 'user', content: 'hi' }] }

/** How many words a stream has, and the time between two of them. */
const WORDS = 40
const WORD_MS = 100

/** A provider of the messages dialect that takes a few milliseconds for an answer and four seconds for a stream. */
export async function slowProvider(): Promise<{ origin: string; close: () => void }> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', piece => {
      body += piece
    })
    request.on('end', () => {
      if (body.includes('"stream":true')) return void stream(response)
      setTimeout(() => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify(ANSWER))
      }, 5)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => void server.close() }
}

async function stream(response: ServerResponse): Promise<void> {
  const send = (type: string, rest: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  send('message_start', { message: { ...ANSWER, content: [], stop_reason: null } })
  send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
  for (let word = 0; word < WORDS; word++) {
    send('content_block_delta', { index: 0, delta: { type: 'text_delta', text: `word${word} ` } })
    await pause(WORD_MS)
  }
  send('content_block_stop', { index: 0 })
  send('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } })
  send('message_stop', {})
  response.end()
}

export const routingConfig = (provider: string, more = '') => `version = 1
price = [{ model = "mock/cheap", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "mock", dialect = "messages", base_url = "${provider}", auth = "none" }]
${more}
[[route]]
match = {}
mode = "enforce"
ladder = ["mock/cheap"]
gates = []
`

export interface ManyProcesses {
  child: ChildProcess
  origin: string
  logs: string[]
  /** The numbers of the processes that answer, and of the one that writes. */
  pids(): Promise<{ serving: number[]; writer: number }>
  stop(): Promise<number | null>
}

export async function manyProcesses(args: string[], vars: Record<string, string> = {}): Promise<ManyProcesses> {
  const command = ['router/cli/main.ts', 'serve', '--bind', '127.0.0.1:0', '--processes', '2', ...args]
  const child = spawn(process.execPath, command, { env: { ...programEnv, ...vars }, stdio: ['ignore', 'pipe', 'pipe'] })
  const logs: string[] = []
  createInterface({ input: child.stderr }).on('line', line => void logs.push(line))
  const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
  const origin = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', line => resolve(/http:\S+/.exec(line)?.[0] ?? line))
    void ended.then(code => reject(new Error(`it ended with ${code}: ${logs.join('\n')}`)))
  })
  return {
    child,
    origin,
    logs,
    async pids() {
      const numbers = (await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')).trim().split(/\s+/)
      const lines = await Promise.all(
        numbers.map(
          async pid => [Number(pid), await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')] as const,
        ),
      )
      const of = (role: string) => lines.filter(([, line]) => line.includes(`\0${role}\0`)).map(([pid]) => pid)
      return { serving: of('serve'), writer: of('writer')[0] ?? 0 }
    },
    async stop() {
      child.kill('SIGTERM')
      return ended
    },
  }
}

export interface Answered {
  status: number
  traceId: string
  costUsd: number
  retryAfter: string | undefined
  text: string
}

/** One call over a connection of this client. */
export async function ask(origin: string, agent: Agent, body: object = ASK): Promise<Answered> {
  const {
    statusCode,
    headers,
    body: answer,
  } = await agent.request({
    origin,
    path: '/v1/messages',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return {
    status: statusCode,
    traceId: String(headers['x-router-trace-id']),
    costUsd: Number(headers['x-router-cost-usd'] ?? 0),
    retryAfter: headers['retry-after']?.toString(),
    text: await answer.text(),
  }
}

export const streamed = { ...ASK, stream: true }

export const wholeStream = Array.from({ length: WORDS }, (_, word) => `word${word} `)

const MOST_FAILED = 100

/** Clients that call one time after the other, each over its one connection, until they are stopped. */
export function clients(origin: string, count: number) {
  let going = true
  const answered: Answered[] = []
  const failed: { client: number; error: unknown }[] = []
  const loops = Array.from({ length: count }, async (_, client) => {
    const agent = new Agent({ connections: 1, pipelining: 1 })
    // Of a router that is gone every call fails, and at once.
    while (going && failed.length < MOST_FAILED) {
      await pause(2)
      try {
        answered.push(await ask(origin, agent))
      } catch (error) {
        failed.push({ client, error })
      }
    }
    await agent.close()
  })
  return {
    answered,
    failed,
    /** Resolves when there are so many answers more. */
    async further(more: number): Promise<void> {
      const wanted = answered.length + more
      // Not for ever, where a test went wrong.
      setTimeout(() => {
        going = false
      }, 90_000).unref()
      await eventually(() => expect(answered.length).toBeGreaterThanOrEqual(wanted), { timeout: 60_000 })
    },
    async stop(): Promise<void> {
      going = false
      await Promise.all(loops)
    },
  }
}
