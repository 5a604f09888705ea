import { emitChat } from '../../shared/dialects/chat/emit.ts'
import { emitMessages } from '../../shared/dialects/messages/emit.ts'
import { chatAnswer, messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, type Script, stream } from '../../tests/upstream/scripted.ts'
import { ANSWER, responsesProvider } from './provider.ts'

type Json = Record<string, unknown>

interface Asked extends Json {
  model: string
  stream?: boolean
  messages: { role: string; content: unknown }[]
  tools?: Json[]
}

/**
 * A provider of every path that the SDKs are tried on. A tool that is offered is called once; a form of the answer is filled; the model `small`
 * has no answer. What is kept (files, batches) has fixed ids.
 */
export function sdkProvider(): Script {
  const responses = responsesProvider()
  return (response, seen, request) => {
    const reply = (script: Script) => script(response, seen, request)
    const path = seen.url.split('?', 1)[0]!.replace(/^\/v1/, '')
    const known = `${seen.method} ${path}`
    const kept = (request.headers['anthropic-version'] === undefined ? undefined : MESSAGES_KEPT[known]) ?? KEPT[known]
    if (kept !== undefined) return reply(answer(200, JSON.stringify(kept)))
    if (path === '/responses') return responses.script(response, seen, request)
    if (seen.method !== 'POST' || !/^\/(?:messages|chat\/completions)$/.test(path))
      return reply(answer(404, JSON.stringify({ error: { message: `no such path: ${path}` } })))
    const asked = JSON.parse(String(seen.body)) as Asked
    const isChat = path !== '/messages'
    const text = Buffer.from(JSON.stringify(isChat ? chatBody(asked) : messagesBody(asked)))
    if (asked.stream !== true) return reply(answer(200, text))
    const { include_usage: includeUsage = false } = (asked.stream_options ?? {}) as { include_usage?: boolean }
    return reply(stream(isChat ? emitChat(text, { includeUsage }) : emitMessages(text)))
  }
}

const FORM = { answer: 'forty-two' }

const nameOf = ({ name, function: fn }: Json) => String(name ?? (fn as Json | undefined)?.name)

/** The call that is due: of the tool that looks until it has, else of a tool that stands for the form of the answer. */
function callDue({ tools = [], messages }: Asked): { name: string; input: Json } | undefined {
  const names = tools.map(nameOf)
  const hasLooked = messages.some(
    ({ role, content }) =>
      role === 'tool' || (Array.isArray(content) && content.some(block => (block as Json).type === 'tool_result')),
  )
  if (names.includes('look') && !hasLooked) return { name: 'look', input: { q: 'note.txt' } }
  const form = names.find(name => name !== 'look')
  return form === undefined ? undefined : { name: form, input: FORM }
}

const hasForm = ({ response_format, output_config, output_format }: Asked) =>
  [response_format, output_format, (output_config as Json | undefined)?.format].some(
    form => (form as Json | undefined)?.type === 'json_schema',
  )

const textFor = (asked: Asked) => (hasForm(asked) ? JSON.stringify(FORM) : ANSWER)

function messagesBody(asked: Asked): object {
  const call = callDue(asked)
  const whole = messagesAnswer(textFor(asked), asked.model)
  if (asked.model === 'small') return { ...whole, content: [] }
  if (call === undefined) return whole
  return { ...whole, content: [{ type: 'tool_use', id: 'toolu_1', ...call }], stop_reason: 'tool_use' }
}

function chatBody(asked: Asked): object {
  const call = callDue(asked)
  if (asked.model === 'small') return chatAnswer('', asked.model)
  const whole = chatAnswer(textFor(asked), asked.model)
  if (call === undefined) return whole
  const made = { name: call.name, arguments: JSON.stringify(call.input) }
  const message = {
    role: 'assistant',
    content: null,
    refusal: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: made }],
  }
  return { ...whole, choices: [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }] }
}

const FILE = {
  id: 'file-1',
  object: 'file',
  bytes: 20,
  created_at: 1,
  filename: 'batch.jsonl',
  purpose: 'batch',
  status: 'processed',
}
/** Files of the other maker, which it knows by the header of its version. */
const MESSAGES_FILE = {
  id: 'file_1',
  type: 'file',
  filename: 'note.txt',
  mime_type: 'text/plain',
  size_bytes: 9,
  created_at: '2026-01-01T00:00:00Z',
  downloadable: false,
}
const MESSAGES_KEPT: Readonly<Record<string, object>> = {
  'POST /files': MESSAGES_FILE,
  'GET /files/file_1': MESSAGES_FILE,
  'DELETE /files/file_1': { id: 'file_1', type: 'file_deleted' },
}
const BATCH = {
  id: 'batch_1',
  object: 'batch',
  endpoint: '/v1/chat/completions',
  input_file_id: 'file-1',
  completion_window: '24h',
  status: 'validating',
  created_at: 1,
}
const MESSAGE_BATCH = {
  id: 'msgbatch_1',
  type: 'message_batch',
  processing_status: 'in_progress',
  request_counts: { processing: 1, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
  created_at: '2026-01-01T00:00:00Z',
  expires_at: '2026-01-02T00:00:00Z',
  ended_at: null,
  archived_at: null,
  cancel_initiated_at: null,
  results_url: null,
}

/** Answers that do not depend on what is asked. */
const KEPT: Readonly<Record<string, object>> = {
  'POST /embeddings': {
    object: 'list',
    model: 'text-embedding-3-small',
    data: [{ object: 'embedding', index: 0, embedding: [0.5, -0.25] }],
    usage: { prompt_tokens: 3, total_tokens: 3 },
  },
  'POST /files': FILE,
  'GET /files/file-1': FILE,
  'POST /batches': BATCH,
  'GET /batches/batch_1': BATCH,
  'POST /messages/batches': MESSAGE_BATCH,
  'GET /messages/batches/msgbatch_1': MESSAGE_BATCH,
  'POST /messages/count_tokens': { input_tokens: 12 },
}
