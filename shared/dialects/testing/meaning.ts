/** What a request asks for, in a form that both dialects reduce to; written apart from the translation it checks. */
type Dict = { readonly [key: string]: string | undefined }
const list = (value: unknown): Dict[] => (Array.isArray(value) ? value : [])
const dict = (value: unknown): Dict => (typeof value === 'object' && value !== null ? (value as Dict) : {})

/** Calls by their number and results by that of their call: each dialect may name calls in its own way. */
function linked(turns: readonly unknown[][]): unknown[][] {
  const open = new Map<unknown, number[]>()
  let calls = 0
  return turns.map(turn => {
    const [kind, id, ...rest] = turn
    if (kind === 'result') return [kind, open.get(id)?.shift(), ...rest]
    if (kind !== 'call') return turn
    open.set(id, [...(open.get(id) ?? []), calls])
    return [kind, calls++, ...rest]
  })
}

export function chatMeaning(request: unknown): unknown {
  const r = dict(request)
  const system: unknown[] = []
  const turns: unknown[][] = []
  for (const message of list(r.messages)) {
    const { role, content } = message
    if (role === 'system' || role === 'developer') system.push(content)
    else if (role === 'tool') turns.push(['result', message.tool_call_id, content])
    else {
      for (const part of typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)) {
        if (part.type === 'text') turns.push([role, part.text])
        if (part.type === 'image_url') turns.push(['image', dict(part.image_url).url])
        if (part.type === 'file') turns.push(['pdf', dict(part.file).filename, dict(part.file).file_data])
      }
      for (const call of list(message.tool_calls)) {
        turns.push(['call', call.id, dict(call.function).name, JSON.parse(dict(call.function).arguments ?? '{}')])
      }
    }
  }
  const choice: unknown = r.tool_choice
  return {
    model: r.model,
    system: system.join('\n\n'),
    turns: linked(turns),
    tools: list(r.tools).map(tool => {
      const { name, description, parameters, strict } = dict(tool.function)
      return { name, description, schema: parameters, strict }
    }),
    choice:
      typeof choice === 'string'
        ? choice
        : dict(dict(choice).function).name && ['named', dict(dict(choice).function).name],
    single: String(r.parallel_tool_calls) === 'false' && choice !== 'none',
    limit: r.max_completion_tokens ?? r.max_tokens,
    // Behind calls of tools a messages model cannot be asked to think, since chat has no thinking to give back.
    effort: r.reasoning_effort === 'none' || endsInCalls(turns) ? undefined : r.reasoning_effort,
    stop: typeof r.stop === 'string' ? [r.stop] : r.stop,
    user: r.user,
    temperature: r.temperature,
    top_p: r.top_p,
    stream: r.stream,
  }
}

/** Whether the last thing that the assistant did is to call tools. */
const endsInCalls = (turns: readonly unknown[][]): boolean =>
  turns.map(([kind]) => String(kind)).findLast(kind => kind === 'assistant' || kind === 'call') === 'call'

const CHOICES: Record<string, string> = { auto: 'auto', any: 'required', none: 'none' }

export function messagesMeaning(request: unknown): unknown {
  const r = dict(request)
  const turns: unknown[][] = []
  for (const { role, content } of list(r.messages)) {
    for (const block of typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)) {
      const source = dict(block.source)
      if (block.type === 'text') turns.push([role, block.text])
      if (block.type === 'image') turns.push(['image', source.url ?? `data:${source.media_type};base64,${source.data}`])
      if (block.type === 'document')
        turns.push(['pdf', block.title ?? 'document.pdf', `data:application/pdf;base64,${source.data}`])
      if (block.type === 'tool_use') turns.push(['call', block.id, block.name, block.input])
      if (block.type === 'tool_result') turns.push(['result', block.tool_use_id, block.content])
    }
  }
  const choice = dict(r.tool_choice)
  const thinking = dict(r.thinking)
  const budget = Number(thinking.budget_tokens)
  return {
    model: r.model,
    system:
      typeof r.system === 'string'
        ? r.system
        : list(r.system)
            .map(block => block.text)
            .join('\n\n'),
    turns: linked(turns),
    tools: list(r.tools).map(({ name, description, input_schema, strict }) => ({
      name,
      description,
      schema: input_schema,
      strict,
    })),
    choice:
      choice.type === 'tool'
        ? ['named', choice.name]
        : // One call at a time needs a choice to stand on, and `auto` is what no choice means.
          CHOICES[choice.type ?? ''],
    single: String(choice.disable_parallel_tool_use) === 'true',
    limit: r.max_tokens,
    effort:
      thinking.type === 'enabled' && !endsInCalls(turns)
        ? budget <= 2048
          ? 'low'
          : budget <= 8192
            ? 'medium'
            : 'high'
        : undefined,
    stop: r.stop_sequences,
    user: dict(r.metadata).user_id,
    temperature: r.temperature,
    top_p: r.top_p,
    stream: r.stream,
  }
}
