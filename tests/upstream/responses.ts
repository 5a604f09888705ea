/** An answer of the Responses API as its provider writes it. */
export const responsesAnswer = (text: string, model = 'gpt-4.1-mini') => ({
  id: 'resp_01',
  object: 'response',
  created_at: 1_767_225_600,
  status: 'completed',
  background: false,
  error: null,
  incomplete_details: null,
  instructions: 'Be short.',
  model,
  output: [
    {
      id: 'ws_01',
      type: 'web_search_call',
      status: 'completed',
      action: { type: 'open_page', url: 'https://a.example/' },
    },
    {
      id: 'msg_01',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', annotations: [], logprobs: [], text }],
    },
  ],
  parallel_tool_calls: true,
  previous_response_id: null,
  service_tier: 'default',
  store: true,
  tools: [],
  usage: {
    input_tokens: 1200,
    input_tokens_details: { cached_tokens: 1000 },
    output_tokens: 50,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 1250,
  },
})

const event = (type: string, sequence_number: number, data: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...data })}\n\n`

const open = () => ({ ...responsesAnswer(''), status: 'in_progress', output: [], usage: null })

/** The same as a stream: its events in the order in which the provider sends them. */
export function responsesFrames(pieces: readonly string[]): string[] {
  const text = pieces.join('')
  const at = { item_id: 'msg_01', output_index: 1, content_index: 0 }
  const item = { id: 'msg_01', type: 'message', role: 'assistant' }
  const [search] = responsesAnswer('').output
  const part = { type: 'output_text', annotations: [], logprobs: [] }
  return [
    ['response.created', { response: open() }] as const,
    ['response.in_progress', { response: open() }] as const,
    ['response.output_item.added', { output_index: 0, item: { ...search, status: 'in_progress' } }] as const,
    ['response.output_item.done', { output_index: 0, item: search }] as const,
    ['response.output_item.added', { output_index: 1, item: { ...item, status: 'in_progress', content: [] } }] as const,
    ['response.content_part.added', { ...at, part: { ...part, text: '' } }] as const,
    ...pieces.map(delta => ['response.output_text.delta', { ...at, delta, logprobs: [] }] as const),
    ['response.output_text.done', { ...at, text, logprobs: [] }] as const,
    ['response.content_part.done', { ...at, part: { ...part, text } }] as const,
    [
      'response.output_item.done',
      { output_index: 1, item: { ...item, status: 'completed', content: [{ ...part, text }] } },
    ] as const,
    ['response.completed', { response: responsesAnswer(text) }] as const,
  ].map(([type, data], i) => event(type, i, data))
}

/** A stream that the provider gives up. */
export const failedFrames = [
  event('response.created', 0, { response: open() }),
  event('response.failed', 1, {
    response: { ...open(), status: 'failed', error: { code: 'server_error', message: 'The model failed.' } },
  }),
]
