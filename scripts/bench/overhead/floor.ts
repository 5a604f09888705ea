import { createServer } from 'node:http'
import { Agent, type Dispatcher } from 'undici'

/** The least a proxy on Node can do: bare server, pooled dispatch, no checks, no record. */
const agent = new Agent({ connections: 512, pipelining: 1 })
const dropped = /^(?:host|connection|transfer-encoding)$/i
createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const { rawHeaders, url = '/', method } = request
    const headers = rawHeaders.filter((_, i) => !dropped.test(rawHeaders[i - (i % 2)]!))
    const options = { origin: process.env.UPSTREAM!, path: url, method: method as Dispatcher.HttpMethod, headers }
    agent.dispatch(
      { ...options, body: Buffer.concat(chunks) },
      {
        onConnect() {},
        onHeaders(status: number, raw: Buffer[]) {
          response.writeHead(status, raw.map(String))
          return true
        },
        onData: (chunk: Buffer) => response.write(chunk),
        onComplete: () => void response.end(),
        onError: () => void response.destroy(),
      },
    )
  })
}).listen(Number(process.env.PORT), '127.0.0.1')
