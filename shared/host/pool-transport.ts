import { ANSWER_MS, MOST_ANSWER_BYTES, type ServerAddress, serverHeaders } from '../sql/hrana/server-address.ts'
import type { HranaTransport } from '../sql/hrana/stream.ts'

/** Over kept connections of plain HTTP: a third of what `fetch` costs for each request. */
export async function poolTransport(address: ServerAddress): Promise<HranaTransport> {
  const { Agent, request } = await import('undici')
  const dispatcher = new Agent({ pipelining: 1, keepAliveTimeout: 60_000, connect: { timeout: 10_000 } })
  const headers = serverHeaders(address)
  return {
    async post(url, body) {
      const late = new AbortController()
      const timer = setTimeout(() => late.abort(new DOMException('no answer within 30 s', 'TimeoutError')), ANSWER_MS)
      try {
        const answer = await request(url, { dispatcher, method: 'POST', headers, body, signal: late.signal })
        const chunks: Buffer[] = []
        let size = 0
        for await (const chunk of answer.body as AsyncIterable<Buffer>) {
          size += chunk.length
          if (size > MOST_ANSWER_BYTES) throw new Error(`the answer is larger than ${MOST_ANSWER_BYTES} bytes`)
          chunks.push(chunk)
        }
        return { status: answer.statusCode, text: Buffer.concat(chunks, size).toString() }
      } finally {
        clearTimeout(timer)
      }
    },
    close: () => dispatcher.destroy(),
  }
}
