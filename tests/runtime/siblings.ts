import type { RuntimeOptions } from '../../runtime/runtime.ts'
import { type Api, api } from './api.ts'

/** Control planes on one store that reach each other in this process; one that is closed is a refused connection. */
export async function siblings(
  size: number,
  options: Partial<RuntimeOptions> & { url: string },
  meddle: (request: Request, from: number) => Promise<Request> = async request => request,
): Promise<(Api & { origin: string })[]> {
  const open = new Map<string, Api>()
  const group: (Api & { origin: string })[] = []
  for (let number = 0; number < size; number++) {
    const origin = `http://plane-${number}.internal:8080`
    const reach = async (request: Request) => {
      const there = open.get(new URL(request.url).origin)
      if (there === undefined) throw new TypeError('fetch failed')
      return there.runtime.fetch(await meddle(request, number))
    }
    const made = await api({ masterKey: new Uint8Array(32).fill(7), ...options, plane: { url: origin, fetch: reach } })
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
