import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { Answered, Exchange, Expected } from './fixture.ts'

/** What a client adds by itself. */
const OF_THE_CLIENT = new Set(['host', 'connection', 'accept-encoding', 'content-length', 'transfer-encoding'])

export interface ScriptedVendor {
  origin: string
  /** From now on exactly these requests are answered, each once, in any order in which they come. */
  script(headers: Readonly<Record<string, string>>, exchanges: readonly Exchange[]): void
  /** Requests that are not in the script, and those that are and did not come. */
  problems(): string[]
  /** How many requests came since the script was set. */
  count(): number
  close(): Promise<void>
}

/** A vendor on this machine that holds method, path, query, headers and body of each request against what was written down. */
export async function scriptedVendor(): Promise<ScriptedVendor> {
  let common: Readonly<Record<string, string>> = {}
  let open: Exchange[] = []
  let wrong: string[] = []
  let requests = 0

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    requests++
    const came = toCame(request, Buffer.concat(chunks).toString())
    const at = open.findIndex(([expected]) => isDeepStrictEqual(toWritten(expected, common), came))
    const [found] = at === -1 ? [] : open.splice(at, 1)
    if (!found) {
      const [next] = open
      wrong.push(JSON.stringify({ came, expected: next && toWritten(next[0], common) }, null, 1))
    }
    const answer: Answered = found?.[1] ?? { status: 599, body: { message: 'nobody wrote this request down' } }
    response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers })
    response.end(answer.raw ?? (answer.body === undefined ? undefined : JSON.stringify(answer.body)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    script(headers, exchanges) {
      common = headers
      open = [...exchanges]
      wrong = []
      requests = 0
    },
    problems: () => [...wrong, ...open.map(([{ method, path }]) => `${method} ${path} did not come`)],
    count: () => requests,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

interface Seen {
  method: string
  path: string
  query: Record<string, string[]>
  headers: Record<string, string>
  body: unknown
}

function toCame({ method = '', url = '', headers }: IncomingMessage, text: string): Seen {
  const { pathname, searchParams } = new URL(url, 'http://vendor')
  const sent = Object.entries(headers).flatMap(([name, value]) =>
    OF_THE_CLIENT.has(name) ? [] : [[name, String(value)]],
  )
  const type = headers['content-type'] ?? ''
  const body =
    text === ''
      ? undefined
      : /^application\/(?:[\w.-]+\+)?json/.test(type)
        ? (JSON.parse(text) as unknown)
        : Object.fromEntries(new URLSearchParams(text))
  return { method, path: pathname, query: toLists(searchParams), headers: Object.fromEntries(sent), body }
}

function toWritten({ method, path, query = {}, json, form, headers }: Expected, common: Record<string, string>): Seen {
  const type =
    json !== undefined
      ? { 'content-type': 'application/json; charset=utf-8' }
      : form && { 'content-type': 'application/x-www-form-urlencoded' }
  return {
    method,
    path,
    query: Object.fromEntries(Object.entries(query).map(([name, value]) => [name, [value].flat() as string[]])),
    headers: { accept: 'application/json', 'user-agent': 'waybill', ...type, ...common, ...headers },
    body: json ?? (form && Object.keys(form).length > 0 ? form : undefined),
  }
}

function toLists(parameters: URLSearchParams): Record<string, string[]> {
  return Object.fromEntries([...parameters.keys()].map(name => [name, parameters.getAll(name)]))
}
