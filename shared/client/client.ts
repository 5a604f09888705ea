import { readJson } from '../json/read-json.ts'
import type { router } from '../wire/router/endpoints.ts'
import type { runtime } from '../wire/runtime/endpoints.ts'
import { ClientError } from './client-error.ts'
import type { CallOptions, ClientOf } from './client-types.ts'
import { routerOperations, runtimeOperations } from './operations.gen.ts'
import { readStream } from './read-stream.ts'
import { type Arguments, type ClientOptions, type Outgoing, type SendCall, sendCalls } from './send-call.ts'

export { ClientError } from './client-error.ts'
export type { CallOptions, StreamEvent } from './client-types.ts'
export type { ClientOptions } from './send-call.ts'

export type RuntimeClient = ClientOf<typeof runtime>
export type RouterClient = ClientOf<Pick<typeof router, 'audit' | 'operations'>>

/** Every operation of a runtime, by resource: `client.runs.create({ body: { agentName: 'helper' } })`. */
export function runtimeClient(options: ClientOptions): RuntimeClient {
  return clientOf(
    runtimeOperations,
    sendCalls(options, key => ({ authorization: `Bearer ${key}` })),
  ) as RuntimeClient
}

/** The audit and the operation of a router. Calls to models go through the SDKs of their providers. */
export function routerClient(options: ClientOptions): RouterClient {
  return clientOf(
    routerOperations,
    sendCalls(options, key => ({ 'x-router-key': key })),
  ) as RouterClient
}

type Operations = Readonly<Record<string, Readonly<Record<string, string>>>>

/** An operation is written as its method and path; `keyed`, `list`, `stream` and `text` say what is special about it. */
function clientOf(operations: Operations, send: SendCall): object {
  const groups = Object.entries(operations).map(([group, named]) => [
    group,
    Object.fromEntries(Object.entries(named).map(([name, written]) => [name, functionOf(written, send)])),
  ])
  return Object.fromEntries(groups) as object
}

function functionOf(written: string, send: SendCall): unknown {
  const [method = '', path = '', kind] = written.split(' ')
  const call: Outgoing = { method, path, keyed: kind === 'keyed' }
  if (kind === 'stream') {
    return (args: Arguments = {}, options: CallOptions = {}) => readStream(send, call, args, options)
  }
  if (kind === 'text') {
    return async (args: Arguments = {}, options: CallOptions = {}) => (await send(call, args, options)).text()
  }
  const one = async (args: Arguments = {}, options: CallOptions = {}) => readAnswer(await send(call, args, options))
  if (kind !== 'list') return one
  return Object.assign(one, {
    each: (args: Arguments = {}, options: CallOptions = {}) => eachOf(send, call, args, options),
  })
}

async function readAnswer(answer: Response): Promise<unknown> {
  const text = await answer.text()
  if (text === '') return undefined
  try {
    return readJson(text)
  } catch (cause) {
    const { status, headers } = answer
    const what = headers.get('content-type') ?? 'no content type'
    throw new ClientError(`the answer is not JSON (${what}): another service is there`, {
      status,
      headers,
      body: text,
      cause,
    })
  }
}

async function* eachOf(send: SendCall, call: Outgoing, args: Arguments, options: CallOptions): AsyncGenerator<unknown> {
  for (let query = args.query; ; ) {
    const answer = await send(call, { ...args, ...(query && { query }) }, options)
    yield* (await readAnswer(answer)) as unknown[]
    const next = /<[^>?]*\?([^>]+)>;\s*rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
    if (next === undefined) return
    query = Object.fromEntries(new URLSearchParams(next))
  }
}
