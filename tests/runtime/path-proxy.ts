import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A proxy that serves under `path` what stands at the address of `target`, which may be told later. */
export async function pathProxy(path: string, target: () => string) {
  const relay = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (!request.url!.startsWith(`${path}/`)) return response.writeHead(404).end('outside of the path')
    const answer = await fetch(target() + request.url!.slice(path.length), {
      method: request.method!,
      headers: Object.entries(request.headers).filter(
        ([name]) => !/^(?:host|connection|content-length|transfer-encoding)$/.test(name),
      ) as [string, string][],
      redirect: 'manual',
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    })
    // What came compressed is plain by now.
    const kept = [...answer.headers].filter(([name]) => !/^content-(?:encoding|length)$/.test(name))
    response.writeHead(answer.status, kept.flat())
    try {
      for await (const chunk of answer.body ?? []) response.write(chunk)
    } finally {
      response.end()
    }
    return response
  }
  // A stream that is cut off at either end is nothing to complain about.
  const proxy = createServer((request, response) => void relay(request, response).catch(() => undefined))
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  return {
    /** Without a slash at its end. */
    base: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${path}`,
    async close() {
      proxy.closeAllConnections()
      await new Promise(resolve => proxy.close(resolve))
    },
  }
}
