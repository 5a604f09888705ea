import fc from 'fast-check'

/** Texts that try the cuts: ASCII, two to four byte characters, line ends that are not SSE line ends, JSON punctuation. */
export const text = fc.string({
  unit: fc.constantFrom('a', 'b', ' ', '"', '\\', '\n', '\r', 'é', '漢', '😀', '\u2028', '\0', 'data: ', '{', '}'),
  maxLength: 30,
})
export const someText = text.filter(value => value !== '')
const name = fc.stringMatching(/^[a-z_]{1,12}$/)
const count = fc.nat(100_000)
const jsonObject = fc.dictionary(fc.constantFrom('a', 'b', 'é', 'list', 'n'), fc.jsonValue({ maxDepth: 2 }), {
  maxKeys: 3,
})

const toolUse = fc.record({ type: fc.constant('tool_use'), id: name.map(n => `toolu_${n}`), name, input: jsonObject })
const block = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant('text'), text }) },
  fc.record({
    type: fc.constant('text'),
    text,
    citations: fc.array(fc.record({ type: fc.constant('char_location'), cited_text: text }), {
      minLength: 1,
      maxLength: 2,
    }),
  }),
  fc.record({ type: fc.constant('thinking'), thinking: text, signature: someText }),
  fc.record({ type: fc.constant('redacted_thinking'), data: name }),
  { weight: 2, arbitrary: toolUse },
  fc.record({ type: fc.constant('server_tool_use'), id: name, name, input: jsonObject }),
  fc.record({
    type: fc.constant('web_search_tool_result'),
    tool_use_id: name,
    content: fc.array(jsonObject, { maxLength: 2 }),
  }),
  fc.record({ type: fc.constant('compaction'), content: fc.option(text), encrypted_content: fc.option(name) }),
  fc.record({ type: fc.constant('a_block_of_next_year'), payload: fc.jsonValue({ maxDepth: 2 }) }),
)
const iteration = fc.record({
  type: fc.constantFrom('message', 'compaction'),
  input_tokens: count,
  output_tokens: count,
})

/** Answers of the messages dialect as the API gives them without streaming, those of its betas among them. */
export const messagesAnswer = fc.record({
  id: name.map(n => `msg_${n}`),
  type: fc.constant('message'),
  role: fc.constant('assistant'),
  model: name,
  content: fc.array(block, { maxLength: 5 }),
  stop_reason: fc.constantFrom(
    'end_turn',
    'max_tokens',
    'stop_sequence',
    'tool_use',
    'pause_turn',
    'compaction',
    'refusal',
    'a_new_reason',
  ),
  stop_sequence: fc.option(name),
  stop_details: fc.option(fc.record({ type: fc.constant('refusal'), category: fc.option(name) })),
  usage: fc.record({
    input_tokens: count,
    cache_creation_input_tokens: count,
    cache_read_input_tokens: count,
    cache_creation: fc.record({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }),
    output_tokens: count,
    service_tier: fc.constantFrom('standard', null),
    server_tool_use: fc.constantFrom(null, { web_search_requests: 2 }),
    iterations: fc.option(fc.array(iteration, { maxLength: 3 })),
    fallback_credit: fc.constantFrom(null, { status: { type: 'redeemed' } }),
  }),
  context_management: fc.option(fc.record({ applied_edits: fc.array(jsonObject, { maxLength: 2 }) })),
  input_transformations: fc.option(fc.array(jsonObject, { maxLength: 2 })),
})

const odds = fc.array(
  fc.record({ token: text, logprob: fc.constant(-0.5), bytes: fc.constant(null), top_logprobs: fc.constant([]) }),
  {
    maxLength: 3,
  },
)
const functionCall = fc.record({
  id: name.map(n => `call_${n}`),
  type: fc.constant('function'),
  function: fc.record({ name, arguments: fc.oneof(fc.json({ maxDepth: 2 }), text) }),
})
const customCall = fc.record({
  id: name.map(n => `call_${n}`),
  type: fc.constant('custom'),
  custom: fc.record({ name, input: text }),
})
const message = fc.record(
  {
    role: fc.constant('assistant'),
    content: fc.option(text),
    refusal: fc.option(someText, { freq: 4 }),
    tool_calls: fc.array(fc.oneof({ weight: 4, arbitrary: functionCall }, customCall), { minLength: 1, maxLength: 3 }),
    reasoning_content: someText,
    annotations: fc.array(fc.record({ type: fc.constant('url_citation'), url: name }), { maxLength: 2 }),
  },
  { requiredKeys: ['role', 'content', 'refusal'] },
)
const choice = fc.record({
  message,
  finish_reason: fc.constantFrom('stop', 'length', 'tool_calls', 'content_filter'),
  logprobs: fc.option(fc.record({ content: fc.option(odds), refusal: fc.option(odds) }), { freq: 2 }),
})

/** Answers of the chat dialect as the API gives them without streaming. */
export const chatAnswer = fc
  .record(
    {
      id: name.map(n => `chatcmpl-${n}`),
      object: fc.constant('chat.completion'),
      created: fc.nat(2_000_000_000),
      model: name,
      choices: fc.array(choice, { minLength: 1, maxLength: 3 }),
      usage: fc.record({
        prompt_tokens: count,
        completion_tokens: count,
        total_tokens: count,
        prompt_tokens_details: fc.record({ cached_tokens: count }),
      }),
      service_tier: fc.constantFrom('default', 'priority'),
      system_fingerprint: name,
      prompt_filter_results: fc.constant([{ prompt_index: 0 }]),
    },
    { requiredKeys: ['id', 'object', 'created', 'model', 'choices', 'usage'] },
  )
  .map(answer => ({ ...answer, choices: answer.choices.map((one, index) => ({ ...one, index })) }))

const status = fc.constant('completed')
const outputText = fc.record({
  type: fc.constant('output_text'),
  text,
  annotations: fc.array(fc.record({ type: fc.constant('url_citation'), url: name }), { maxLength: 2 }),
  logprobs: odds,
})
const item = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('message'),
      role: fc.constant('assistant'),
      status,
      content: fc.array(fc.oneof(outputText, fc.record({ type: fc.constant('refusal'), refusal: someText })), {
        maxLength: 2,
      }),
    }),
  },
  fc.record({
    type: fc.constant('function_call'),
    call_id: name,
    name,
    arguments: fc.oneof(fc.json({ maxDepth: 2 }), text),
    status,
  }),
  fc.record({ type: fc.constant('custom_tool_call'), call_id: name, name, input: text, status }),
  fc.record({
    type: fc.constant('reasoning'),
    summary: fc.array(fc.record({ type: fc.constant('summary_text'), text }), { maxLength: 2 }),
    encrypted_content: fc.option(name),
  }),
  fc.record({ type: fc.constant('web_search_call'), status, action: fc.record({ type: fc.constant('search') }) }),
)

/** Answers of the Responses API as it gives them without streaming. */
export const responsesAnswer = fc
  .record({
    id: name.map(n => `resp_${n}`),
    object: fc.constant('response'),
    created_at: fc.nat(2_000_000_000),
    error: fc.constant(null),
    incomplete_details: fc.constantFrom(null, { reason: 'max_output_tokens' }, { reason: 'content_filter' }),
    model: name,
    output: fc.array(item, { maxLength: 4 }),
    service_tier: fc.constant('default'),
    usage: fc.record({
      input_tokens: count,
      input_tokens_details: fc.record({ cached_tokens: count }),
      output_tokens: count,
      output_tokens_details: fc.record({ reasoning_tokens: count }),
      total_tokens: count,
    }),
  })
  .map(answer => ({
    ...answer,
    status: answer.incomplete_details === null ? 'completed' : 'incomplete',
    output: answer.output.map((one, i) => ({
      ...one,
      id: `item_${i}`,
      ...('call_id' in one ? { call_id: `call_${i}` } : {}),
    })),
  }))

/** The parts of a stream, cut at the given places. */
export function cutAt(bytes: Uint8Array, points: readonly number[]): Uint8Array[] {
  const places = [...new Set(points.map(point => point % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...places].map((start, i) => bytes.slice(start, places[i] ?? bytes.length))
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
