import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serveRuntime } from '../../host/node.ts'

/** The command line, for a process of its own. */
export const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))
export const KEY = `wb_live_${'c'.repeat(43)}`

/** A runtime with an agent that echoes, in a folder of its own. */
export async function servedRuntime() {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-cli-'))
  const service = await serveRuntime({
    PLATFORM_BIND: '127.0.0.1:0',
    PLATFORM_DATA_DIR: folder,
    PLATFORM_LOG_LEVEL: 'off',
    PLATFORM_BOOTSTRAP_KEY: KEY,
  })
  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(service.origin + path, {
      method,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    return (path.endsWith('/events') ? undefined : JSON.parse(text)) as T
  }
  await call('POST', '/v1/agents', { name: 'echo', manifest: { model: 'demo/echo' } })
  return {
    folder,
    origin: service.origin,
    call,
    async close() {
      await service.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
