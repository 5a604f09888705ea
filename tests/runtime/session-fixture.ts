import { expect } from 'vitest'
import type { FoundModel, ModelAnswer, ModelCall, ModelRequest } from '../../runtime/execution/models/model.ts'
import type { RuntimeOptions } from '../../runtime/runtime.ts'
import type { Session, TurnReply } from '../../shared/wire/runtime/session.ts'
import { type Api, api } from './api.ts'
import type { Received } from './sse.ts'

/** What the test in progress has opened; a suite closes it after each. */
const open: { close(): Promise<void> }[] = []
export async function closeAll(): Promise<void> {
  for (const one of open.splice(0).toReversed()) await one.close()
}

/** The test ends what it has opened itself, in the middle. */
export function closedByHand(): void {
  open.splice(0)
}

export type Answer = (request: ModelRequest, call: ModelCall) => Promise<ModelAnswer>

export const answerOf = (text: string, more: Partial<ModelAnswer> = {}): ModelAnswer => ({
  text,
  toolCalls: [],
  stop: 'end',
  provider: 'test',
  model: 'test/model',
  spent: { tokensIn: 10, tokensOut: 5, costNano: 2000 },
  ...more,
})

/** Says the pieces one after the other. */
export const saying =
  (...pieces: string[]): Answer =>
  async (_request, { onDelta }) => {
    for (const piece of pieces) onDelta?.(piece)
    return answerOf(pieces.join(''))
  }

/** A model that the test lets speak piece by piece. */
export function stepped() {
  const asked = Promise.withResolvers<ModelCall>()
  const ended = Promise.withResolvers<ModelAnswer>()
  const answer: Answer = async (_request, call) => {
    asked.resolve(call)
    return ended.promise
  }
  let text = ''
  return {
    answer,
    asked: asked.promise,
    async say(piece: string) {
      text += piece
      ;(await asked.promise).onDelta?.(piece)
    },
    end: () => ended.resolve(answerOf(text)),
  }
}

export async function fixture(
  answers: Answer[] | undefined,
  options: Partial<RuntimeOptions> & { url?: string } = {},
  manifest = {},
) {
  const seen: ModelRequest[] = []
  const model: FoundModel = {
    id: 'test/model',
    ask(request, call) {
      seen.push(structuredClone(request))
      const answer = answers?.shift()
      if (!answer) throw new Error('nothing is scripted')
      return answer(request, call)
    },
  }
  const on = await api({ ...(answers && { models: { find: async () => model } }), ...options })
  open.push(on)
  const retry = { maxAttempts: 2, backoffMs: 0, maxBackoffMs: 1, jitter: false }
  const made = await on.call('GET', '/v1/agents/friend')
  if (made.status === 404)
    await on.json(201, 'POST', '/v1/agents', { name: 'friend', manifest: { retry, ...manifest } })
  return {
    ...on,
    seen,
    opened: (more = {}) => on.json<Session>(201, 'POST', '/v1/sessions', { agentName: 'friend', ...more }),
  }
}

export const send = ({ call }: Pick<Api, 'call'>, id: string, content: string, more = {}, headers = {}) =>
  call('POST', `/v1/sessions/${id}/messages`, { content, ...more }, headers)
export const said = async (on: Pick<Api, 'call'>, id: string, content: string, more = {}): Promise<TurnReply> => {
  const answer = await send(on, id, content, more)
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`)
  return JSON.parse(text) as TurnReply
}
export const get = ({ json }: Pick<Api, 'json'>, id: string) => json<Session>(200, 'GET', `/v1/sessions/${id}`)
export const listen = (on: Pick<Api, 'events'>, id: string, query = '', lastId?: string) =>
  on.events(`/v1/sessions/${id}/events${query}`, lastId === undefined ? {} : { 'last-event-id': lastId })

/** Events up to and with the one of that name. */
export async function upTo(stream: { next(): Promise<Received | undefined> }, ...names: string[]): Promise<Received[]> {
  const found: Received[] = []
  for (;;) {
    const one = await stream.next()
    if (!one) throw new Error(`the stream ended before ${names.join(' or ')}`)
    found.push(one)
    if (names.includes(one.event ?? '')) return found
  }
}

/** The text that a reader has who begins anew at seq 1. */
export function joined(events: readonly Received[]): string {
  let text = ''
  let expected = 1
  for (const { event, data } of events) {
    if (event !== 'message_delta') continue
    if (data.seq === 1) {
      text = ''
      expected = 1
    }
    expect(data.seq).toBe(expected++)
    text += String(data.delta)
  }
  return text
}

export const ids = (events: readonly Received[]) => events.map(({ id }) => Number(id))
