import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent } from 'undici'

const root = new URL('../../../', import.meta.url).pathname

/** Another engine for durable steps, with a workflow of no-op steps behind HTTP. */
export interface Engine {
  name: string
  /** Starts a workflow of so many steps and waits for its end. */
  run: (steps: number) => Promise<void>
  close: () => Promise<void>
}

/** A program of this folder that answers HTTP. */
export function program(script: string, vars: Record<string, string>): ChildProcess {
  const env = { PATH: process.env.PATH, ...vars }
  const args = ['--no-warnings', `${root}scripts/bench/peers/${script}`]
  return spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit'] })
}

export async function ended(children: readonly ChildProcess[]): Promise<void> {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  }
}

/** Posts `{ steps }` and reads the answer, over as many connections as are asked for at once. */
export function poster(origin: string, path: string) {
  const agent = new Agent({ connections: 64, pipelining: 1 })
  return {
    async run(steps: number): Promise<void> {
      const { statusCode, body } = await agent.request({
        origin,
        path,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ steps }),
      })
      const text = await body.text()
      if (statusCode !== 200 || text !== String(steps)) throw new Error(`${origin}${path}: ${statusCode} ${text}`)
    },
    close: () => agent.close(),
  }
}
