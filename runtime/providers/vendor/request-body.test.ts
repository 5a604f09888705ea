import { expect, it } from 'vitest'
import { type Message, newestImages, type ResultImage } from '../../execution/models/model.ts'
import { requestBody, takesImages } from './request-body.ts'
import { toolNames } from './tool-names.ts'

const image: ResultImage = { mediaType: 'image/png', base64: 'AAAA' }
const call = (id: string) => ({ id, name: 'look', arguments: {} })
const result = (callId: string, images?: ResultImage[]) => ({
  callId,
  name: 'look',
  content: `of ${callId}`,
  failed: false,
  ...(images && { images }),
})
const messages: Message[] = [
  { role: 'user', text: 'q' },
  { role: 'assistant', text: '', toolCalls: [call('a'), call('b')] },
  { role: 'tool', results: [result('a', [image]), result('b')] },
]

function body(dialect: 'chat' | 'messages', said: Message[], shown: boolean, model = 'm') {
  const request = { system: '', messages: said, tools: [], maxOutputTokens: 9 }
  const images = shown ? newestImages(said) : new Set<ResultImage>()
  const options = {
    model,
    names: toolNames(request),
    vendor: { maxTokens: 'max_tokens' as const },
    images,
    countsUsage: true,
  }
  return JSON.parse(requestBody(dialect, request, options)) as { messages: { content: unknown }[] }
}

it('puts an image into the result of its call where the dialect has a place for it', () => {
  expect(body('messages', messages, true).messages[2]).toEqual({
    role: 'user',
    content: [
      {
        type: 'tool_result',
        tool_use_id: 'a',
        content: [
          { type: 'text', text: 'of a' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
        ],
      },
      { type: 'tool_result', tool_use_id: 'b', content: 'of b', cache_control: { type: 'ephemeral' } },
    ],
  })
})

it('shows it behind all results of the turn where results are text', () => {
  expect(body('chat', messages, true).messages.slice(2)).toEqual([
    { role: 'tool', tool_call_id: 'a', content: 'of a' },
    { role: 'tool', tool_call_id: 'b', content: 'of b' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'The images of the results above, in their order:' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'high' } },
      ],
    },
  ])
})

it.each(['chat', 'messages'] as const)('says so to a model that takes none, in %s', dialect => {
  const text = JSON.stringify(body(dialect, messages, false))
  expect(text).toContain('of a\\nOne image of this result is not shown here.')
  expect(text).not.toContain('AAAA')
})

it.each<[string, string, boolean]>([
  ['anthropic', 'claude-sonnet-5', true],
  ['anthropic', 'claude-3-5-haiku-latest', true],
  ['anthropic', 'claude-2.1', false],
  ['openai', 'gpt-5.5', true],
  ['openai', 'gpt-4o', true],
  ['openai', 'gpt-4o-mini', false],
  ['openai', 'gpt-4o-audio-preview', false],
  ['openai', 'o3-mini', false],
  ['openai', 'gpt-3.5-turbo', false],
  ['router', 'anthropic/claude-opus-5', true],
  ['google', 'gemini-2.5-flash', true],
  ['google', 'gemma-3-27b-it', false],
  ['router', 'auto', false],
  ['custom', 'claude-opus-5', false],
])('%s/%s takes images: %s', (provider, model, takes) => {
  expect(takesImages(provider as Parameters<typeof takesImages>[0], model)).toBe(takes)
})

it('gives the messages dialect ids of calls that it takes, each once', () => {
  const turn: Message[] = [
    { role: 'assistant', text: '', toolCalls: [call('functions.look:0')] },
    { role: 'tool', results: [result('functions.look:0')] },
  ]
  const text = JSON.stringify(body('messages', [{ role: 'user', text: 'q' }, ...turn, ...turn], false))
  const ids = [...text.matchAll(/"(?:id|tool_use_id)":"([^"]*)"/g)].map(([, id]) => id)
  expect(ids).toEqual(['functions_look_0', 'functions_look_0', 'functions_look_0_2', 'functions_look_0_2'])
})

it('names the calls of another model as models of Mistral take them', () => {
  const { messages: sent } = body('chat', messages, false, 'mistralai/mistral-small-latest')
  const ids = JSON.stringify(sent).match(/(?<="(?:id|tool_call_id)":")[^"]*/g)
  expect(ids).toHaveLength(4)
  expect(ids!.slice(2)).toEqual(ids!.slice(0, 2))
  for (const id of ids!) expect(id).toMatch(/^[A-Za-z0-9]{9}$/)
})

it('lets a model of Mistral answer a tool before the user goes on', () => {
  const roles = (model: string) =>
    body('chat', [...messages, { role: 'user', text: 'and now' }], false, model).messages.map(
      message => (message as { role?: string }).role,
    )
  expect(roles('devstral-small')).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant', 'user'])
  expect(roles('m')).toEqual(['user', 'assistant', 'tool', 'tool', 'user'])
})

it.each([
  ['gemini-3.8-flash', true],
  ['gemini-flash-latest', true],
  ['google/gemini-4-argon', true],
  ['gemini-2.5-flash', false],
  ['gpt-5.1', false],
])('says to %s that calls of the history have no signature: %s', (model, signed) => {
  const extra_content = { google: { thought_signature: 'skip_thought_signature_validator' } }
  const [, { tool_calls: calls }] = body('chat', messages, false, model).messages as [
    unknown,
    { tool_calls: { extra_content?: unknown }[] },
  ]
  expect(calls.map(one => one.extra_content)).toEqual(signed ? [extra_content, extra_content] : [undefined, undefined])
})

it.each([
  ['deepseek-v4-flash', true],
  ['accounts/fireworks/models/kimi-k2p5', true],
  ['deepseek-chat', false],
  ['moonshotai/kimi-k2-instruct-0905', false],
])('shows %s turns of the history with thoughts: %s', (model, thinks) => {
  const sent = body('chat', messages, false, model).messages as { role?: string; reasoning_content?: string }[]
  for (const { role, reasoning_content } of sent) {
    // An empty text is refused like none.
    expect(reasoning_content).toBe(thinks && role === 'assistant' ? ' ' : undefined)
  }
})
