import fc from 'fast-check'

const words = fc
  .string({ unit: fc.constantFrom('a', 'b', ' ', '"', '\n', 'é', '😀'), maxLength: 8 })
  .map(text => `w${text}`)
const name = fc.stringMatching(/^[a-z_]{1,8}$/)
const schema = fc.record({
  type: fc.constant('object'),
  properties: fc.dictionary(name, fc.record({ type: fc.constantFrom('string', 'number') }), { maxKeys: 2 }),
})
const args = fc.dictionary(name, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 })
const base64 = fc.constantFrom('QUJD', 'AAAA')
const imageType = fc.constantFrom('image/png', 'image/jpeg', 'image/gif', 'image/webp')
const stops = fc.uniqueArray(words, { minLength: 1, maxLength: 4 })
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

/** A conversation that both dialects can hold: calls are answered at once, and the last word is not the assistant's. */
interface Exchange {
  user: {
    text: string
    image?: { type: string; data: string } | { url: string }
    pdf?: { data: string; title?: string }
  }
  assistant: { text: string; calls: { id: string; name: string; args: object; result: string }[] }
}
const image = fc.oneof(
  fc.record({ type: imageType, data: base64 }),
  fc.record({ url: fc.constant('https://example.com/a.png') }),
)
const exchange: fc.Arbitrary<Exchange> = fc.record({
  user: fc.record(
    { text: words, image, pdf: fc.record({ data: base64, title: name }, { requiredKeys: ['data'] }) },
    { requiredKeys: ['text'] },
  ),
  assistant: fc
    .record({
      text: fc.oneof(words, fc.constant('')),
      calls: fc.array(fc.record({ id: fc.oneof(name, fc.constant('functions.f:0')), name, args, result: words }), {
        maxLength: 2,
      }),
    })
    .filter(({ text, calls }) => text !== '' || calls.length > 0),
})
const conversation = fc.record({
  system: fc.array(words, { maxLength: 2 }),
  exchanges: fc.array(exchange, { maxLength: 3 }),
  last: optional(words),
})
const shared = {
  temperature: optional(fc.constantFrom(0, 0.5, 1)),
  top_p: optional(fc.constantFrom(0.1, 1)),
  stream: optional(fc.boolean()),
}
const tool = fc.record({ name, description: optional(words), schema, strict: optional(fc.boolean()) })

/** Leaves out what is undefined, as a client's JSON does. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value))

export const chatRequest = fc
  .record({
    talk: conversation,
    tools: fc.array(tool, { maxLength: 2 }),
    choice: fc.constantFrom(undefined, 'auto', 'none', 'required', 'named'),
    parallel: fc.constantFrom(undefined, true, false),
    limit: fc.constantFrom('max_tokens', 'max_completion_tokens'),
    effort: fc.constantFrom(undefined, undefined, 'none', 'low', 'medium', 'high'),
    stop: optional(fc.oneof(words, stops)),
    user: optional(name),
    harmless: fc.record(
      { store: fc.constant(false), n: fc.constant(1), seed: fc.constant(null), metadata: args },
      { requiredKeys: [] },
    ),
    ...shared,
  })
  .map(({ talk, tools, choice, parallel, limit, effort, stop, user, harmless, temperature, top_p, stream }) => {
    const thinks = effort !== undefined && effort !== 'none'
    const forced = choice === 'required' || choice === 'named'
    const picked = tools.length === 0 || (thinks && forced) ? undefined : choice
    return plain({
      model: 'asked-for',
      messages: [
        ...talk.system.map((content, i) => ({ role: i % 2 === 0 ? 'system' : 'developer', content })),
        ...talk.exchanges.flatMap(chatExchange),
        ...(talk.last === undefined && talk.exchanges.at(-1)?.assistant.calls.length
          ? []
          : [{ role: 'user', content: talk.last ?? 'go on' }]),
      ],
      ...(tools.length === 0
        ? {}
        : {
            tools: tools.map(({ schema: parameters, ...rest }) => ({
              type: 'function',
              function: { ...rest, parameters },
            })),
          }),
      tool_choice: picked === 'named' ? { type: 'function', function: { name: tools[0]?.name } } : picked,
      parallel_tool_calls: tools.length === 0 ? undefined : parallel,
      [limit]: 20_000,
      reasoning_effort: effort,
      stop,
      user,
      ...harmless,
      temperature: thinks ? undefined : temperature,
      top_p,
      stream,
    })
  })

function chatExchange({ user, assistant }: Exchange): object[] {
  const parts: object[] = [{ type: 'text', text: user.text }]
  if (user.image !== undefined) {
    const url = 'url' in user.image ? user.image.url : `data:${user.image.type};base64,${user.image.data}`
    parts.push({ type: 'image_url', image_url: { url, detail: 'low' } })
  }
  if (user.pdf !== undefined) {
    parts.push({
      type: 'file',
      file: { filename: user.pdf.title ?? 'document.pdf', file_data: `data:application/pdf;base64,${user.pdf.data}` },
    })
  }
  return [
    { role: 'user', content: parts.length === 1 ? user.text : parts },
    {
      role: 'assistant',
      content: assistant.text === '' ? null : assistant.text,
      refusal: null,
      tool_calls: assistant.calls.length === 0 ? undefined : assistant.calls.map(chatCall),
    },
    ...assistant.calls.map(call => ({ role: 'tool', tool_call_id: call.id, content: call.result })),
  ]
}

const chatCall = ({ id, name: called, args: given }: { id: string; name: string; args: object }) => ({
  id,
  type: 'function',
  function: { name: called, arguments: JSON.stringify(given, null, 1) },
})

export const messagesRequest = fc
  .record({
    talk: conversation,
    tools: fc.array(tool, { maxLength: 2 }),
    choice: fc.constantFrom(undefined, 'auto', 'none', 'any', 'tool'),
    single: fc.constantFrom(undefined, true),
    thinking: fc.constantFrom(
      undefined,
      undefined,
      { type: 'disabled' },
      { type: 'enabled', budget_tokens: 1024 },
      { type: 'enabled', budget_tokens: 16_384 },
    ),
    stop_sequences: optional(stops),
    user: optional(name),
    cached: fc.boolean(),
    ...shared,
  })
  .map(({ talk, tools, choice, single, thinking, user, cached, temperature, ...rest }) => {
    const thinks = thinking?.type === 'enabled'
    const cache = cached ? { cache_control: { type: 'ephemeral' } } : {}
    const picked = tools.length === 0 || (thinks && (choice === 'any' || choice === 'tool')) ? undefined : choice
    const results = (i: number) =>
      (talk.exchanges[i]?.assistant.calls ?? []).map(call => ({
        type: 'tool_result',
        tool_use_id: call.id,
        content: call.result,
        ...cache,
      }))
    const closing = [
      ...results(talk.exchanges.length - 1),
      ...(talk.last === undefined ? [] : [{ type: 'text', text: talk.last }]),
    ]
    return plain({
      model: 'asked-for',
      max_tokens: 20_000,
      system:
        talk.system.length === 0
          ? undefined
          : talk.system.length === 1
            ? talk.system[0]
            : talk.system.map(text => ({ type: 'text', text, ...cache })),
      messages: [
        ...talk.exchanges.flatMap(({ user: asked, assistant }, i) => [
          { role: 'user', content: [...results(i - 1), ...userBlocks(asked, cache)] },
          {
            role: 'assistant',
            content: [
              ...(assistant.text === '' ? [] : [{ type: 'text', text: assistant.text }]),
              ...assistant.calls.map(call => ({
                type: 'tool_use',
                id: call.id,
                name: call.name,
                input: call.args,
                ...cache,
              })),
            ],
          },
        ]),
        { role: 'user', content: closing.length === 0 ? 'go on' : closing },
      ],
      tools:
        tools.length === 0
          ? undefined
          : tools.map(({ schema: input_schema, ...one }) => ({ ...one, input_schema, ...cache })),
      tool_choice:
        picked === undefined
          ? undefined
          : {
              type: picked,
              name: picked === 'tool' ? tools[0]?.name : undefined,
              disable_parallel_tool_use: picked === 'none' ? undefined : single,
            },
      thinking,
      metadata: user === undefined ? undefined : { user_id: user },
      temperature: thinks ? undefined : temperature,
      ...rest,
    })
  })

function userBlocks({ text, image: picture, pdf }: Exchange['user'], cache: object): object[] {
  const blocks: object[] = [{ type: 'text', text, ...cache }]
  if (picture !== undefined) {
    const source =
      'url' in picture ? { type: 'url', ...picture } : { type: 'base64', media_type: picture.type, data: picture.data }
    blocks.push({ type: 'image', source, ...cache })
  }
  if (pdf !== undefined) {
    blocks.push({
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: pdf.data },
      title: pdf.title,
    })
  }
  return blocks
}
