import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, type Dispatcher } from 'undici'
import { freePort } from '../free-port.ts'
import { built } from './built.ts'

export const KEY = `wb_live_${'b'.repeat(43)}`
const root = new URL('../../../', import.meta.url).pathname

export interface Answer {
  status: number
  text: string
}

/** A runtime as it is published, in its own process on a file on the project's disk, and a client of it. */
export async function benchRuntime(vars: Record<string, string> = {}) {
  const cache = join(root, 'node_modules/.cache/waybill/')
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'bench-'))
  await built()
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const headers = ['authorization', `Bearer ${KEY}`, 'content-type', 'application/json']
  const agent = new Agent({ connections: 2000, pipelining: 1 })
  let child = await begin()

  async function begin(): Promise<ChildProcess> {
    const env = {
      PATH: process.env.PATH,
      PLATFORM_BIND: `127.0.0.1:${port}`,
      PLATFORM_DATA_DIR: folder,
      PLATFORM_BOOTSTRAP_KEY: KEY,
      PLATFORM_LOG_LEVEL: 'error',
      ...vars,
    }
    const started = spawn(process.execPath, [`${root}dist/runtime/cli/main.js`, 'serve'], { env, stdio: 'ignore' })
    for (;;) {
      const answer = await fetch(`${origin}/healthz`).catch(() => undefined)
      await answer?.body?.cancel()
      if (answer?.status === 200) return started
      if (started.exitCode !== null) throw new Error(`the runtime ended with ${started.exitCode}`)
      await wait(2)
    }
  }

  async function stop(signal: NodeJS.Signals): Promise<void> {
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  const served = {
    folder,
    /** One call; `onText` sees a stream as it comes. By the client that peers are asked with. */
    call(
      method: Dispatcher.HttpMethod,
      path: string,
      body?: unknown,
      onText?: (text: string) => void,
    ): Promise<Answer> {
      return new Promise((resolve, reject) => {
        const decoder = new StringDecoder('utf8')
        let status = 0
        let text = ''
        const sent = body === undefined ? null : JSON.stringify(body)
        agent.dispatch(
          { origin, method, path, headers, body: sent, bodyTimeout: 0, headersTimeout: 0 },
          {
            onConnect() {},
            onHeaders(code: number) {
              status = code
              return true
            },
            onData(chunk: Buffer) {
              const piece = decoder.write(chunk)
              if (onText) onText(piece)
              else text += piece
              return true
            },
            onComplete: () => resolve({ status, text }),
            onError: reject,
          },
        )
      })
    },
    /** What a call that must succeed answers. */
    async post<T>(path: string, body: object): Promise<T> {
      const { status, text } = await served.call('POST', path, body)
      if (status >= 300) throw new Error(`${path}: ${status} ${text}`)
      return JSON.parse(text) as T
    },
    pid: () => child.pid,
    /** Megabytes of memory that the process holds. */
    async resident(): Promise<number> {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1.024e-3
    },
    kill: () => stop('SIGKILL'),
    /** After a kill: the same store, a new process. */
    async again(): Promise<void> {
      child = await begin()
    },
    async close() {
      await agent.destroy()
      await stop('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
  return served
}

export type BenchRuntime = Awaited<ReturnType<typeof benchRuntime>>

/** An agent whose demo model calls a tool that does nothing as often as the prompt says. */
export async function noopAgent({ post }: BenchRuntime, name = 'noop', pool?: string): Promise<void> {
  const limits = { maxTurns: 500, maxSteps: 2000 }
  const anomalies = { steps: 100_000, loopIterations: 100_000 }
  await post('/v1/agents', {
    name,
    ...(pool !== undefined && { labels: { 'waybill.pool': pool } }),
    manifest: { tools: ['wait', 'wait_signal'], limits, anomalies },
  })
}

/** Starts a run of `turns` turns, each a model step and a tool step, and resolves when its stream ends, which begins with its last event unless said otherwise. */
export async function noopRun(
  { call, post }: BenchRuntime,
  turns: number,
  agentName = 'noop',
  fromSeq = turns * 4,
): Promise<string> {
  const prompt = `/call*${turns} wait {"seconds":0}`
  const { id } = await post<{ id: string }>('/v1/runs', { agentName, input: { prompt } })
  await call('GET', `/v1/runs/${id}/events?from_seq=${fromSeq}`, undefined, () => {})
  return id
}
