import type { RuntimeOptions } from '../../runtime/runtime.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { type Api, api } from './api.ts'

export interface Meddling {
  /** Sees what one sends to another. */
  sent?: (request: Request, from: number) => void
  /** Comes before each commit of one. */
  before?: (from: number, sql: string) => Promise<void>
}

/** Control planes on one store that reach each other in this process; one that is closed is a refused connection. */
export async function siblings(
  size: number,
  options: Partial<RuntimeOptions> & { url: string },
  { sent, before }: Meddling = {},
): Promise<(Api & { origin: string })[]> {
  const open = new Map<string, Api>()
  const group: (Api & { origin: string })[] = []
  for (let number = 0; number < size; number++) {
    const origin = `http://plane-${number}.internal:8080`
    const reach = async (request: Request) => {
      const there = open.get(new URL(request.url).origin)
      if (there === undefined) throw new TypeError('fetch failed')
      sent?.(request.clone() as Request, number)
      return there.runtime.fetch(request)
    }
    const own = await openDb(options.url)
    const db: Db = {
      ...own,
      async write(statements) {
        await before?.(number, statements.map(one => (typeof one === 'string' ? one : one.sql)).join(';'))
        return own.write(statements)
      },
    }
    const peer = { url: origin, fetch: reach }
    const made = await api({ masterKey: new Uint8Array(32).fill(7), ...options, db, peer })
    open.set(origin, made)
    group.push({
      ...made,
      origin,
      async close() {
        if (!open.delete(origin)) return
        await made.close()
      },
    })
  }
  return group
}
