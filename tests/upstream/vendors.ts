/** Streams of hosts that speak the chat dialect each in its own way, as they document them: a call with thoughts, or a text. */
export interface VendorStream {
  vendor: string
  frames: string[]
  text: string
  /** Arguments of the one call of a tool. */
  args?: string
  /** Input without the cache, read from the cache, output; null where the host counts nothing. */
  tokens: readonly [uncached: number, read: number, output: number] | null
}

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const DONE = 'data: [DONE]\n\n'

/** Frames of one choice; `top` stands in each of them. */
function frames(
  top: object,
  ...pieces: readonly [delta: object, finish?: string | null, rest?: object, choice?: object][]
) {
  return pieces.map(([delta, finish = null, rest = {}, choice = {}]) =>
    data({
      id: 'x-1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      ...top,
      choices: [{ index: 0, delta, finish_reason: finish, ...choice }],
      ...rest,
    }),
  )
}
const last = (top: object, rest: object) =>
  data({ id: 'x-1', object: 'chat.completion.chunk', created: 1, model: 'm', ...top, choices: [], ...rest })
const usage = (prompt_tokens: number, completion_tokens: number, rest: object = {}) => ({
  usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens, ...rest },
})
const assistant = (content: unknown = '') => ({ role: 'assistant', content })
const call = (rest: object = {}, text: unknown = '{"city":"Ulm"}') => ({
  id: 'c1',
  type: 'function',
  function: { name: 'look', arguments: text },
  ...rest,
})

export const VENDOR_STREAMS: readonly VendorStream[] = [
  {
    vendor: 'OpenRouter',
    frames: [
      ': OPENROUTER PROCESSING\n\n',
      ...frames(
        { provider: 'Novita' },
        [{ ...assistant(), reasoning: 'hm', reasoning_details: [{ type: 'reasoning.text', text: 'hm', index: 0 }] }],
        [assistant('fine')],
        [assistant(), 'stop', {}, { native_finish_reason: 'end_turn' }],
        [assistant(), null, usage(100, 5, { prompt_tokens_details: { cached_tokens: 40 }, cost: 0.000001 })],
      ),
      ': OPENROUTER PROCESSING\n\n',
      DONE,
    ],
    text: 'fine',
    tokens: [60, 40, 5],
  },
  {
    vendor: 'Groq, not asked for its count',
    frames: [
      ...frames({}, [assistant(), null, { x_groq: { id: 'req_1' } }], [{ content: 'fine' }]),
      ...frames({}, [{}, 'stop', { x_groq: { id: 'req_1', ...usage(100, 5, { queue_time: 0.1, total_time: 0.2 }) } }]),
      DONE,
    ],
    text: 'fine',
    tokens: [100, 0, 5],
  },
  {
    vendor: 'Mistral, with a whole call and its thoughts in a list',
    frames: [
      ...frames(
        {},
        [assistant([{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }])],
        [{ content: [{ type: 'text', text: 'fine' }] }],
        [
          { tool_calls: [{ id: 'c1', function: { name: 'look', arguments: '{"city":"Ulm"}' }, index: 0 }] },
          'tool_calls',
          usage(100, 5),
        ],
      ),
      DONE,
    ],
    text: 'fine',
    args: '{"city":"Ulm"}',
    tokens: [100, 0, 5],
  },
  {
    vendor: 'DeepSeek',
    frames: [
      ': keep-alive\n\n',
      ...frames(
        { system_fingerprint: 'fp', usage: null },
        [{ role: 'assistant', content: null, reasoning_content: '' }],
        [{ content: null, reasoning_content: 'hm' }],
        [{ content: 'fine', reasoning_content: null }],
        [{ tool_calls: [call({ index: 0 }, '')] }],
        [{ tool_calls: [{ index: 0, function: { arguments: '{"city":"Ulm"}' } }] }],
        [
          { content: '', reasoning_content: null },
          'tool_calls',
          usage(100, 5, { prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 36 }),
        ],
      ),
      DONE,
    ],
    text: 'fine',
    args: '{"city":"Ulm"}',
    tokens: [36, 64, 5],
  },
  {
    vendor: 'Together',
    frames: [
      ...frames(
        { prompt: [] },
        [{ token_id: 1, ...assistant('fine') }, null, { usage: null }, { text: 'fine', logprobs: null, seed: null }],
        [{ token_id: 2, ...assistant('') }, 'eos', usage(100, 5, { cached_tokens: 32 }), { text: '', seed: 7 }],
      ),
      DONE,
    ],
    text: 'fine',
    tokens: [68, 32, 5],
  },
  {
    vendor: 'xAI, with totals in each chunk and reasoning beside the output',
    frames: [
      ...frames(
        {},
        [
          { role: 'assistant', reasoning_content: 'hm' },
          null,
          { usage: { prompt_tokens: 100, completion_tokens: 0, total_tokens: 101 } },
        ],
        [{ content: 'fine' }, null, { usage: { prompt_tokens: 100, completion_tokens: 1, total_tokens: 104 } }],
        [{}, 'stop'],
      ),
      last(
        {},
        {
          usage: {
            prompt_tokens: 100,
            completion_tokens: 1,
            total_tokens: 105,
            prompt_tokens_details: { text_tokens: 100, cached_tokens: 10 },
            completion_tokens_details: { reasoning_tokens: 4 },
          },
        },
      ),
      DONE,
    ],
    text: 'fine',
    tokens: [90, 10, 5],
  },
  {
    vendor: 'Azure OpenAI',
    frames: [
      data({ choices: [], created: 0, id: '', model: '', object: '', prompt_filter_results: [{ prompt_index: 0 }] }),
      ...frames(
        {},
        [assistant()],
        [{ content: 'fine' }, null, {}, { content_filter_results: { hate: {} } }],
        [{}, 'stop'],
      ),
      last({}, usage(100, 5)),
      DONE,
    ],
    text: 'fine',
    tokens: [100, 0, 5],
  },
  {
    vendor: 'Perplexity, with the message so far and no end mark',
    frames: frames(
      { citations: ['https://a.test'], search_results: [] },
      [assistant('fi'), null, usage(100, 2), { message: assistant('fi') }],
      [assistant('ne'), null, usage(100, 5), { message: assistant('fine') }],
      [assistant(''), 'stop', usage(100, 5, { cost: { total_cost: 0.000001 } }), { message: assistant('fine') }],
    ),
    text: 'fine',
    tokens: [100, 0, 5],
  },
  {
    vendor: 'Databricks, with parts for Claude',
    frames: [
      ...frames(
        {},
        [assistant([{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm', signature: '' }] }])],
        [assistant('')],
        [assistant([{ type: 'text', text: 'fine' }])],
        [assistant(''), 'stop', usage(100, 5)],
      ),
      DONE,
    ],
    text: 'fine',
    tokens: [100, 0, 5],
  },
  {
    vendor: 'Vertex and Gemini, whose calls have no index of their own',
    frames: [
      ...frames(
        {},
        [
          {
            ...assistant('fine'),
            tool_calls: [call({ index: 0, extra_content: { google: { thought_signature: 's' } } })],
          },
        ],
        [{}, 'stop', usage(100, 5)],
      ),
      DONE,
    ],
    text: 'fine',
    args: '{"city":"Ulm"}',
    tokens: [100, 0, 5],
  },
  {
    vendor: 'vLLM',
    frames: [
      ...frames(
        {},
        [{ ...assistant(), reasoning_content: null, tool_calls: [] }],
        [{ content: 'fine', tool_calls: [] }, null, {}, { logprobs: null }],
        [{ content: '', tool_calls: [] }, 'stop', {}, { logprobs: null, stop_reason: null }],
      ),
      last({}, usage(100, 5, { prompt_tokens_details: null })),
      DONE,
    ],
    text: 'fine',
    tokens: [100, 0, 5],
  },
  {
    vendor: 'llama.cpp, with arguments that are an object',
    frames: [
      ...frames(
        {},
        [{ role: 'assistant', content: null }],
        [{ content: 'fine' }],
        [{ tool_calls: [call({ index: 0 }, { city: 'Ulm' })] }],
        [{}, 'tool_calls'],
      ),
      last({}, { ...usage(100, 5), timings: { cache_n: 0, prompt_n: 100 } }),
      DONE,
    ],
    text: 'fine',
    args: '{"city":"Ulm"}',
    tokens: [100, 0, 5],
  },
  {
    vendor: 'Ollama, not asked for its count',
    frames: [
      ...frames(
        { system_fingerprint: 'fp_ollama' },
        [assistant('fine')],
        [{ ...assistant(), tool_calls: [call({ index: 0 })] }],
      ),
      ...frames({ system_fingerprint: 'fp_ollama' }, [assistant(), 'stop']),
      DONE,
    ],
    text: 'fine',
    args: '{"city":"Ulm"}',
    tokens: null,
  },
  {
    vendor: 'Cloudflare Workers AI, with calls by id alone',
    frames: [
      ...frames(
        {},
        [assistant('fine')],
        [{ tool_calls: [call({}, '{"city":')] }],
        [{ tool_calls: [{ function: { arguments: '"Ulm"}' } }] }],
        [{}, 'tool_calls'],
      ),
      last({}, usage(100, 5, { prompt_tokens_details: { cached_tokens: 0 } })),
      DONE,
    ],
    text: 'fine',
    args: '{"city":"Ulm"}',
    tokens: [100, 0, 5],
  },
  {
    vendor: 'Fireworks and Cerebras',
    frames: [
      ...frames(
        { system_fingerprint: 'fp' },
        [assistant()],
        [{ reasoning: 'hm' }],
        [{ content: 'fine' }],
        [
          {},
          'stop',
          { ...usage(100, 5, { prompt_tokens_details: { cached_tokens: 16 } }), time_info: { queue_time: 0 } },
        ],
      ),
      DONE,
    ],
    text: 'fine',
    tokens: [84, 16, 5],
  },
]
