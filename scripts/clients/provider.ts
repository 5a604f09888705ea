import { createHash } from 'node:crypto'
import { emitResponses } from '../../shared/dialects/responses/emit.ts'
import { answer, type Script, stream } from '../../tests/upstream/scripted.ts'

type Json = Record<string, unknown>

/** What the provider noticed of one call. */
export interface Noticed {
  model: string
  items: readonly string[]
  stream: boolean
  sha256: string
}

export interface ResponsesProvider {
  script: Script
  noticed: readonly Noticed[]
}

export const ANSWER = 'The file says: forty-two.'

/**
 * A provider of the Responses API as it is documented: it keeps what it is not told to forget, and refuses calls without a result, results
 * without a call, references that it does not know and sealed reasoning of another maker. It lets the client run one tool and then answers;
 * the model `small` gives no answer.
 */
export function responsesProvider(): ResponsesProvider {
  const kept = new Map<string, Json>()
  const responses = new Map<string, readonly Json[]>()
  const sealed = new Set<string>()
  const noticed: Noticed[] = []
  let made = 0

  function itemsOf(request: Json): Json[] {
    const given =
      typeof request.input === 'string' ? [{ role: 'user', content: request.input }] : (request.input as Json[])
    const before = typeof request.previous_response_id === 'string' ? responses.get(request.previous_response_id) : []
    if (before === undefined) throw new Refused('previous_response_not_found', 'Previous response not found.')
    const whole = given.map(item => {
      if (item.type !== 'item_reference') return item
      const one = kept.get(String(item.id))
      if (one === undefined) throw new Refused('item_not_found', `Item with id '${String(item.id)}' not found.`)
      return one
    })
    const items = [...before, ...whole]
    check(items)
    return items
  }

  function check(items: readonly Json[]): void {
    const idsOf = (type: RegExp) =>
      items.filter(item => type.test(String(item.type))).map(({ call_id }) => String(call_id))
    const [calls, results] = [idsOf(/_call$/), idsOf(/_call_output$/)]
    for (const id of results)
      if (!calls.includes(id))
        throw new Refused('no_call', `No tool call found for function call output with call_id ${id}.`)
    for (const id of calls)
      if (!results.includes(id)) throw new Refused('no_output', `No tool output found for function call ${id}.`)
    for (const { type, encrypted_content: content } of items) {
      if (type === 'reasoning' && typeof content === 'string' && !sealed.has(content))
        throw new Refused('invalid_encrypted_content', 'The encrypted content could not be verified.')
    }
  }

  function outputFor(request: Json, items: readonly Json[]): Json[] {
    made += 1
    const done = items.some(({ type }) => /_call_output$/.test(String(type)))
    const seal = `sealed-${made}`
    sealed.add(seal)
    const include = (request.include as string[] | undefined) ?? []
    const reasoning = {
      id: `rs_${made}`,
      type: 'reasoning',
      summary: [],
      ...(include.includes('reasoning.encrypted_content') ? { encrypted_content: seal } : {}),
    }
    const offers = Array.isArray(request.tools) && request.tools.length > 0
    if (!done && offers) return [reasoning, callFor(request, made)]
    if (request.model === 'small') return [reasoning]
    const text = { type: 'output_text', text: ANSWER, annotations: [], logprobs: [] }
    return [reasoning, { id: `msg_${made}`, type: 'message', role: 'assistant', status: 'completed', content: [text] }]
  }

  return {
    noticed,
    script(response, seen, asked) {
      if (seen.method !== 'POST' || !seen.url.endsWith('/responses')) {
        return answer(404, JSON.stringify({ error: { message: 'Not found', type: 'invalid_request_error' } }))(
          response,
          seen,
          asked,
        )
      }
      const request = JSON.parse(String(seen.body)) as Json
      const sha256 = createHash('sha256').update(seen.body).digest('hex')
      try {
        const items = itemsOf(request)
        noticed.push({
          model: String(request.model),
          items: items.map(({ type, role }) => String(type ?? role)),
          stream: request.stream === true,
          sha256,
        })
        const output = outputFor(request, items)
        const body = responseOf(request, output, made)
        if (request.store !== false) {
          responses.set(body.id, [...items, ...output])
          for (const item of output) kept.set(String(item.id), item)
        }
        const text = JSON.stringify(body)
        const script = request.stream === true ? stream(emitResponses(Buffer.from(text))) : answer(200, text)
        return script(response, seen, asked)
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        const { message, code } = error
        noticed.push({ model: `REFUSED ${code}`, items: [], stream: request.stream === true, sha256 })
        const said = { error: { message, type: 'invalid_request_error', param: 'input', code } }
        return answer(400, JSON.stringify(said))(response, seen, asked)
      }
    },
  }
}

class Refused extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** A call of the first tool of the client that runs something. */
export function callFor({ tools }: Json, made: number): Json {
  const functions = ((tools as Json[] | undefined) ?? []).filter(({ type }) => type === 'function')
  const tool =
    functions.find(({ name }) => /^(?:exec_command|shell|shell_command|look)$/.test(String(name))) ?? functions[0]
  const name = String(tool?.name)
  const parameters = Object.keys((tool?.parameters as { properties?: object } | undefined)?.properties ?? {})
  const command = parameters.includes('command') && name === 'shell' ? { command: ['cat', 'note.txt'] } : {}
  const args: Json = parameters.includes('cmd')
    ? { cmd: 'cat note.txt' }
    : parameters.includes('command')
      ? { command: 'cat note.txt', ...command }
      : { q: 'note.txt' }
  return {
    id: `fc_${made}`,
    type: 'function_call',
    status: 'completed',
    call_id: `call_${made}`,
    name,
    arguments: JSON.stringify(args),
  }
}

function responseOf(request: Json, output: readonly Json[], made: number) {
  return {
    id: `resp_${made}`,
    object: 'response',
    created_at: 1_767_225_600 + made,
    status: 'completed',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: request.instructions ?? null,
    metadata: {},
    model: String(request.model),
    output,
    parallel_tool_calls: true,
    previous_response_id: request.previous_response_id ?? null,
    store: request.store ?? true,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage: {
      input_tokens: 1200,
      input_tokens_details: { cached_tokens: 1000 },
      output_tokens: 50,
      output_tokens_details: { reasoning_tokens: 10 },
      total_tokens: 1250,
    },
  }
}
