import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { typed } from '../../../shared/cli/testing/typed.ts'
import { serveRuntime } from '../../host/node.ts'
import { runtimeProgram } from '../commands.ts'

export const KEY = `wb_live_${'t'.repeat(43)}`

export const atTerminal = (args: string[], env: Record<string, string>, input?: string) =>
  typed(runtimeProgram, args, { env, ...(input !== undefined && { input }) })

/** A runtime that listens, and what its commands need to find it. */
export async function terminalFixture(more: Record<string, string> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-terminal-'))
  const vars = {
    PLATFORM_BIND: '127.0.0.1:0',
    PLATFORM_DATA_DIR: join(folder, 'data'),
    PLATFORM_LOG_LEVEL: 'off',
    PLATFORM_BOOTSTRAP_KEY: KEY,
    ...more,
  }
  let service = await serveRuntime(vars)
  const env = () => ({ PLATFORM_URL: service.origin, PLATFORM_API_KEY: KEY, PLATFORM_DATA_DIR: vars.PLATFORM_DATA_DIR })
  let open = true
  return {
    folder,
    vars,
    env,
    run: (...args: string[]) => atTerminal(args, env()),
    /** With something on standard input. */
    runWith: (input: string, ...args: string[]) => atTerminal(args, env(), input),
    async call<T>(method: string, path: string, body?: unknown): Promise<T> {
      const answer = await fetch(service.origin + path, {
        method,
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
      return (text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text) as T
    },
    async stop() {
      open = false
      await service.close()
    },
    /** On what is in the data folder now. */
    async again() {
      service = await serveRuntime(vars)
      open = true
    },
    async close() {
      if (open) await service.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export type TerminalFixture = Awaited<ReturnType<typeof terminalFixture>>
