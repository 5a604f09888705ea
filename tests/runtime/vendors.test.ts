import { afterAll, beforeAll, expect, it } from 'vitest'
import { chatFrames } from '../upstream/answers.ts'
import { answer, stream } from '../upstream/scripted.ts'
import { VENDOR_STREAMS } from '../upstream/vendors.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

let on: ProviderFixture
beforeAll(async () => {
  on = await providerFixture()
  await on.configure('openai-compatible')
})
afterAll(async () => on.close())

interface Sent {
  messages: { role: string; reasoning_content?: string; tool_calls?: { function: { arguments: string } }[] }[]
}

it.each(VENDOR_STREAMS)('an agent reads a stream of $vendor', async ({ frames, text, args, tokens }) => {
  on.remote.seen.length = 0
  on.remote.queue(stream(frames))
  on.remote.always(stream(chatFrames(['done'], { usage: true })))
  const { run, steps } = await on.ran('openai-compatible/m')
  expect([run.status, run.output]).toEqual(['succeeded', { result: args === undefined ? text : 'done' }])
  const [first] = steps
  const [uncached, read, output] = tokens ?? []
  if (uncached !== undefined) expect([first!.tokensIn, first!.tokensOut]).toEqual([uncached + read!, output])
  if (args === undefined) return
  const { messages } = JSON.parse(String(on.remote.seen[1]!.body)) as Sent
  const calls = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(one => one.function.arguments))
  expect(calls.map(one => JSON.parse(one))).toEqual([JSON.parse(args)])
})

it('an agent goes on at a model of DeepSeek that wants to see what it thought', async () => {
  const { frames } = VENDOR_STREAMS.find(({ vendor }) => vendor === 'DeepSeek')!
  on.remote.queue(stream(frames))
  on.remote.always((response, seen, request) => {
    const { messages } = JSON.parse(String(seen.body)) as Sent
    const lacks = messages.some(({ role, reasoning_content: thoughts }) => role === 'assistant' && !thoughts)
    const message = 'The `reasoning_content` in the thinking mode must be passed back to the API.'
    const error = { message, type: 'invalid_request_error', param: null, code: 'invalid_request_error' }
    const say = lacks ? answer(400, JSON.stringify({ error })) : stream(chatFrames(['done'], { usage: true }))
    return say(response, seen, request)
  })
  const { run } = await on.ran('openai-compatible/deepseek-v4-pro')
  expect([run.status, run.output]).toEqual(['succeeded', { result: 'done' }])
})

it.each([
  [498, JSON.stringify({ error: { message: 'Flex tier capacity exceeded', type: 'capacity_exceeded' } })],
  [524, '<html><title>A timeout occurred</title></html>'],
])('an agent asks again after %i', async (status, body) => {
  on.remote.queue(answer(status, body))
  on.remote.always(stream(chatFrames(['done'], { usage: true })))
  const { run } = await on.ran('openai-compatible/m')
  expect([run.status, run.output]).toEqual(['succeeded', { result: 'done' }])
})

it('half of an answer that DeepSeek broke off for want of room is no answer', async () => {
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  on.remote.queue(
    stream([chunk({ role: 'assistant', content: 'Half' }, null), chunk({}, 'insufficient_system_resource')]),
  )
  on.remote.always(stream(chatFrames(['done'], { usage: true })))
  const { run } = await on.ran('openai-compatible/m')
  expect([run.status, run.output]).toEqual(['succeeded', { result: 'done' }])
})

it.each([
  ['', '/v1/chat/completions'],
  ['/openai/v1/', '/openai/v1/chat/completions'],
  ['/serving-endpoints', '/serving-endpoints/chat/completions'],
  ['/chat/completions', '/chat/completions'],
])('an agent calls a host at %s as its vendor gives it', async (path, called) => {
  await on.configure('openai-compatible:at', { baseUrl: on.remote.origin + path })
  on.remote.always(stream(chatFrames(['done'], { usage: true })))
  const { run } = await on.ran('openai-compatible:at/m')
  expect([run.status, on.remote.seen.at(-1)!.url]).toEqual(['succeeded', called])
})
