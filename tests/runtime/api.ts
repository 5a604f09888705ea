import { createRuntime, type RuntimeOptions } from '../../runtime/runtime.ts'
import { nativeCipher } from '../../shared/host/native-crypto.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { openThreaded } from '../open-threaded.ts'
import { sseReader } from './sse.ts'

export const KEY = `wb_live_${'k'.repeat(43)}`

/** A runtime on a real database, called as a client would. */
export async function api(options: Partial<RuntimeOptions> & { url?: string; writeThread?: boolean } = {}) {
  const { url = ':memory:', writeThread = false, ...rest } = options
  const db = rest.db ?? (await (writeThread ? openThreaded(url) : openDb(url)))
  const runtime = createRuntime({ db, bootstrapKey: KEY, cipher: nativeCipher, ...rest })
  await runtime.ready()

  async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    return runtime.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    )
  }

  /** The body of an answer that has the expected status. */
  async function json<T>(status: number, method: string, path: string, body?: unknown): Promise<T> {
    const answer = await call(method, path, body)
    const text = await answer.text()
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return JSON.parse(text === '' ? 'null' : text) as T
  }

  return {
    db,
    runtime,
    call,
    json,
    async events(path: string, headers: Record<string, string> = {}) {
      const answer = await call('GET', path, undefined, headers)
      if (!answer.body) throw new Error(`${path}: no body`)
      return sseReader(answer.body)
    },
    async close() {
      await runtime.close(1000)
      await db.close()
    },
  }
}

export type Api = Awaited<ReturnType<typeof api>>
