import { Agent, createServer, request as send } from 'node:http'

/** The proxy most people would write: node:http on both sides with a keep-alive agent. */
const agent = new Agent({ keepAlive: true, maxSockets: 512 })
const upstream = new URL(process.env.UPSTREAM!)
createServer((request, response) => {
  const { host: _, connection: __, ...headers } = request.headers
  const { url: path, method } = request
  const out = send({ agent, hostname: upstream.hostname, port: upstream.port, path, method, headers }, answer => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  out.on('error', () => response.destroy())
  request.pipe(out)
}).listen(Number(process.env.PORT), '127.0.0.1')
