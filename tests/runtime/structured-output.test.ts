import { afterEach, describe, expect, it } from 'vitest'
import { completionFrames, completionOf, messageFrames, messageOf } from '../upstream/frames.ts'
import { answer, type Script, type Seen, stream } from '../upstream/scripted.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

const open: ProviderFixture[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

const outputSchema = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] }
const TEXT = '{"total": 42}'

interface Tool {
  name: string
  function?: { name: string }
}
interface Sent {
  model: string
  tools?: Tool[]
  tool_choice?: { type: string; name?: string } | 'required'
  output_config?: { format: { type: string; schema: Record<string, unknown> } }
  response_format?: { type: string; json_schema: { name: string; strict: boolean; schema: Record<string, unknown> } }
}
const sent = ({ body }: Seen) => JSON.parse(body.toString()) as Sent

/** A provider that knows no schema answers in prose unless the form is in the prompt, as the real ones do. */
const PROSE = 'The total is 42.'

/** As Anthropic documents it: structured output of newer models only, every object closed; a tool that is forced is called. */
const anthropic: Script = (response, seen, request) => {
  const { model, output_config: config, tool_choice: choice, tools } = sent(seen)
  const refuse = (message: string) =>
    answer(400, JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }))(
      response,
      seen,
      request,
    )
  const say = (block: Record<string, unknown>) => stream(messageFrames(messageOf([block])))(response, seen, request)
  if (config !== undefined) {
    if (!/-4-[5-9]/.test(model)) return refuse('output_config.format: this model does not support structured outputs')
    if (config.format.schema.additionalProperties !== false)
      return refuse(
        "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
      )
    return say({ type: 'text', text: TEXT })
  }
  if (typeof choice === 'object') {
    const name = choice.type === 'tool' ? choice.name : tools?.at(-1)?.name
    return say({ type: 'tool_use', id: 'toolu_01', name, input: JSON.parse(TEXT) })
  }
  return say({ type: 'text', text: PROSE })
}

/** As OpenAI documents it: a strict schema has closed objects and requires every member. */
const openai: Script = (response, seen, request) => {
  const { response_format: format, tool_choice: choice, tools } = sent(seen)
  const say = (message: Record<string, unknown>) =>
    stream(completionFrames(completionOf([message])))(response, seen, request)
  if (format !== undefined) {
    const { strict, schema } = format.json_schema
    const names = Object.keys(schema.properties as object)
    if (
      strict &&
      (schema.additionalProperties !== false || names.some(name => !(schema.required as string[]).includes(name)))
    )
      return answer(
        400,
        JSON.stringify({ error: { message: 'Invalid schema for response_format', type: 'invalid_request_error' } }),
      )(response, seen, request)
    return say({ content: TEXT })
  }
  if (choice === undefined) return say({ content: PROSE })
  const name = tools?.at(-1)?.function?.name
  const call = { id: 'call_1', type: 'function', function: { name, arguments: TEXT } }
  return say({ content: null, tool_calls: [call] })
}

async function ran(provider: string, model: string, remote: Script, manifest: object = {}) {
  const fixture = await providerFixture()
  open.push(fixture)
  fixture.remote.always(remote)
  await fixture.configure(provider)
  const { run } = await fixture.ran(`${provider}/${model}`, { outputSchema, outputRepairs: 0, ...manifest })
  return { run, sent: fixture.remote.seen.map(sent), fixture }
}

describe('an agent with an output schema gets its answer at the first request', () => {
  it.each<[string, string, Script, 'format' | 'tool', object?]>([
    ['anthropic', 'claude-haiku-4-5', anthropic, 'format'],
    ['anthropic', 'claude-haiku-4-5', anthropic, 'format', { tools: ['wait'] }],
    ['anthropic', 'claude-3-5-haiku-20241022', anthropic, 'tool'],
    ['anthropic', 'claude-3-5-haiku-20241022', anthropic, 'tool', { tools: ['wait'] }],
    ['openai', 'gpt-4.1-mini', openai, 'format'],
    ['openai', 'gpt-4-turbo', openai, 'tool', { tools: ['wait'] }],
    ['openai-compatible', 'local', openai, 'tool'],
  ])('%s/%s', async (provider, model, remote, by, manifest) => {
    const { run, sent: bodies } = await ran(provider, model, remote, manifest)
    expect(run).toMatchObject({ status: 'succeeded', output: { total: 42 } })
    expect(bodies).toHaveLength(1)
    const [body] = bodies
    expect([body?.output_config ?? body?.response_format, body?.tool_choice].map(one => one !== undefined)).toEqual(
      by === 'format' ? [true, false] : [false, true],
    )
  })

  it.each([
    ['LM Studio', 'local', (choice: unknown) => typeof choice === 'object', 'Invalid tool_choice type: "object".'],
    [
      'DeepSeek',
      'deepseek-v4-pro',
      (choice: unknown) => choice !== undefined && choice !== 'auto',
      'Thinking mode does not support this tool_choice',
    ],
  ])('also of %s, which does not take every way to force a call', async (_, model, refuses, message) => {
    const remote: Script = (response, seen, request) => {
      const { tool_choice: choice, tools } = sent(seen)
      if (refuses(choice)) return answer(400, JSON.stringify({ error: message }))(response, seen, request)
      const named = { name: tools?.at(-1)?.function?.name, arguments: TEXT }
      const tool_calls = [{ id: 'call_1', type: 'function', function: named }]
      return stream(completionFrames(completionOf([{ content: null, tool_calls }])))(response, seen, request)
    }
    const { run, sent: bodies } = await ran('openai-compatible', model, remote)
    expect([run.status, bodies.length]).toEqual(['succeeded', 1])
  })

  it('makes the calls of other tools first, and takes the answer from the tool once nothing else is called', async () => {
    const remote: Script = (response, seen, request) => {
      const name = sent(seen).tools?.at(-1)?.function?.name
      const args = JSON.stringify({ seconds: 0 })
      const wait = { id: 'call_1', type: 'function', function: { name: 'wait', arguments: args } }
      const early = { id: 'call_2', type: 'function', function: { name, arguments: '{"total": 1}' } }
      const last = { id: 'call_3', type: 'function', function: { name, arguments: TEXT } }
      const first = !seen.body.includes('"role":"tool"')
      const calls = first ? [wait, early] : [last]
      return stream(completionFrames(completionOf([{ content: null, tool_calls: calls }])))(response, seen, request)
    }
    const { run, sent: bodies } = await ran('openai-compatible', 'local', remote, { tools: ['wait'] })
    expect(run).toMatchObject({ status: 'succeeded', output: { total: 42 } })
    expect(bodies.map(({ tool_choice: choice }) => choice)).toEqual(['required', 'required'])
  })

  it('still refuses an answer that does not fit', async () => {
    const wrong: Script = (response, seen, request) =>
      stream(completionFrames(completionOf([{ content: '{"total": "many"}' }])))(response, seen, request)
    const { run } = await ran('openai', 'gpt-4.1-mini', wrong)
    expect(run).toMatchObject({ status: 'failed', error: { code: 'output_invalid' } })
  })
})
