/** Plain answers of both dialects, as their providers write them. */
export const messagesAnswer = (text = 'Hello.', model = 'claude-haiku-4-5') => ({
  id: 'msg_01',
  type: 'message',
  role: 'assistant',
  model,
  content: [{ type: 'text', text }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: {
    input_tokens: 100,
    cache_creation_input_tokens: 3000,
    cache_read_input_tokens: 10_000,
    cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 2000 },
    output_tokens: 50,
  },
})

export const chatAnswer = (text = 'Hello.', model = 'gpt-4.1-mini') => ({
  id: 'chatcmpl-01',
  object: 'chat.completion',
  created: 1_767_225_600,
  model,
  choices: [
    { index: 0, message: { role: 'assistant', content: text, refusal: null }, logprobs: null, finish_reason: 'stop' },
  ],
  usage: {
    prompt_tokens: 1200,
    completion_tokens: 50,
    total_tokens: 1250,
    prompt_tokens_details: { cached_tokens: 1000 },
  },
})

const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`

export function messagesFrames(pieces: readonly string[], model = 'claude-haiku-4-5'): string[] {
  const { content: _, ...shell } = messagesAnswer('', model)
  return [
    event('message_start', {
      message: { ...shell, content: [], stop_reason: null, usage: { ...shell.usage, output_tokens: 1 } },
    }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ...pieces.map(text => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 50 } }),
    event('message_stop', {}),
  ]
}

export function chatFrames(pieces: readonly string[], { model = 'gpt-4.1-mini', usage = false } = {}): string[] {
  const chunk = (delta: object, finish: string | null, rest: object = {}) =>
    `data: ${JSON.stringify({
      id: 'chatcmpl-01',
      object: 'chat.completion.chunk',
      created: 1_767_225_600,
      model,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
      ...(usage && { usage: null }),
      ...rest,
    })}\n\n`
  return [
    chunk({ role: 'assistant', content: '', refusal: null }, null),
    ...pieces.map(content => chunk({ content }, null)),
    chunk({}, 'stop'),
    ...(usage ? [chunk({}, null, { choices: [], usage: chatAnswer().usage })] : []),
    'data: [DONE]\n\n',
  ]
}
