import { type ChildProcess, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent } from 'undici'
import { expect } from 'vitest'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { eventually } from '../eventually.ts'
import { programEnv } from '../program-env.ts'

const KEY = `wb_live_${'p'.repeat(43)}`
export const bearer = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }

export interface ManyProcesses {
  child: ChildProcess
  origin: string
  logs: string[]
  /** The numbers of the processes that answer. */
  pids(): Promise<number[]>
  /** Asks over a connection of its own, so that the next process in turn answers. */
  call<T>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }>
  stop(): Promise<number | null>
}

/** `runtime serve --processes` as a program of its own, with every process that it starts. */
export async function manyProcesses(vars: Record<string, string>, processes = '2'): Promise<ManyProcesses> {
  const command = ['runtime/cli/main.ts', 'serve', '--processes', processes]
  const env = {
    ...programEnv,
    PLATFORM_BIND: '127.0.0.1:0',
    PLATFORM_TUNNEL_BIND: '127.0.0.1:0',
    PLATFORM_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
    PLATFORM_BOOTSTRAP_KEY: KEY,
    PLATFORM_LOG_LEVEL: 'runtime.processes=info,error',
    ...vars,
  }
  const child = spawn(process.execPath, command, { env, stdio: ['ignore', 'pipe', 'pipe'] })
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
      return lines.filter(([, line]) => line.includes('host/processes/child')).map(([pid]) => pid)
    },
    async call<T>(method: string, path: string, body?: unknown) {
      const agent = fresh()
      try {
        return await ask<T>(agent, origin, method, path, body)
      } finally {
        await agent.close()
      }
    },
    async stop() {
      child.kill('SIGTERM')
      return ended
    },
  }
}

export const fresh = () => new Agent({ connections: 1, pipelining: 1 })

export async function ask<T>(
  agent: Agent,
  origin: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: T }> {
  const answer = await agent.request({
    origin,
    path,
    method: method as 'GET',
    headers: bearer,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.body.text()
  return {
    status: answer.statusCode,
    body: (text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text) as T,
  }
}

const MOST_FAILED = 100

/** Clients, each over its one connection, that start a run and look until it has ended, one after the other. */
export function clients(origin: string, count: number) {
  let going = true
  const ended: Run[] = []
  const failed: { client: number; error: unknown }[] = []
  const refused: unknown[] = []

  async function client(number: number): Promise<void> {
    const agent = fresh()
    /** Asked again after a broken connection; each broken one is noted. */
    const surely = async <T>(method: string, path: string, body?: unknown) => {
      for (;;) {
        try {
          const answer = await ask<T>(agent, origin, method, path, body)
          if (answer.status < 300) return answer.body
          refused.push(answer)
        } catch (error) {
          failed.push({ client: number, error })
        }
        if (failed.length + refused.length > MOST_FAILED) return undefined
        await pause(50)
      }
    }
    while (going) {
      const made = await surely<Run>('POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'hello' } })
      let run = made
      while (run !== undefined && !isTerminal(run.status)) {
        await pause(10)
        run = await surely<Run>('GET', `/v1/runs/${run.id}`)
      }
      if (run === undefined) return
      ended.push(run)
    }
    await agent.close()
  }

  const loops = Array.from({ length: count }, async (_, number) => client(number))
  return {
    ended,
    failed,
    refused,
    /** Resolves when so many runs more have ended. */
    async further(more: number): Promise<void> {
      const wanted = ended.length + more
      await eventually(() => expect(ended.length).toBeGreaterThanOrEqual(wanted), { timeout: 60_000 })
    },
    async stop(): Promise<void> {
      going = false
      await Promise.all(loops)
    },
  }
}
