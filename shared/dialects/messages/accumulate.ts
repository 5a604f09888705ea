import type { SseFrame } from '../../http/sse-read.ts'
import { type Accumulator, decodedAnswer, decoding, fail, merged, Undecodable, upstreamFailed } from '../accumulator.ts'
import type { BadResponse, Decoded } from '../candidate.ts'
import { isCutJson, tryParseJson, verbatim } from '../json-text.ts'
import {
  asArray,
  asObject,
  asString,
  isArray,
  isObject,
  type Json,
  type JsonObject,
  tryParse,
  without,
} from '../json-value.ts'
import { errorIn } from '../upstream-error.ts'
import { type AnswerBlock, CUT_SHORT, fallbackOf, messagesCandidate } from './answer.ts'
import { knownCounts, messagesUsage } from './usage.ts'

interface OpenBlock {
  shell: JsonObject
  text: string
  thinking: string
  signature: string | undefined
  input: string | undefined
  readonly citations: Json[]
}

/** Members of a message that its last delta brings beside its `delta`. */
const BESIDE_DELTA = ['context_management', 'input_transformations'] as const

/** Frames of these types carry parts that go into the answer unread; they are parsed with their text kept. */
const KEEPS_TEXT = new Set(['message_start', 'content_block_start'])

/** Puts a messages stream together, by the order of dialects 1.1; the result is what the official client would build. */
export function messagesAccumulator(): Accumulator {
  let start: JsonObject | undefined
  let usage: JsonObject = {}
  const tokens = messagesUsage()
  let last: JsonObject = {}
  let ended = false
  let replayable = true
  let failure: BadResponse | undefined
  let open: OpenBlock | undefined
  const blocks: OpenBlock[] = []

  function begin(data: JsonObject): void {
    if (start !== undefined) fail('out_of_order', 'a second message_start')
    start = startOf(data)
    // The official client writes into this object and throws when it is missing.
    if (isObject(start.usage)) tokens.see(start.usage)
    else replayable = false
    usage = asObject(start.usage)
  }

  function openBlock(data: JsonObject): void {
    if (open !== undefined) fail('out_of_order', 'a content block opened before the one before it closed')
    if (data.index !== blocks.length)
      fail('out_of_order', `a content block with index ${String(data.index)}, expected ${blocks.length}`)
    open = openedBlock(data)
    blocks.push(open)
    const model = fallbackOf(open.shell)
    if (model !== null) start = { ...start, model }
  }

  function addDelta(data: JsonObject): void {
    if (open === undefined || data.index !== blocks.length - 1)
      fail('out_of_order', 'a delta outside its content block')
    const delta = isObject(data.delta) ? data.delta : fail('bad_frame', 'content_block_delta holds no delta')
    addToBlock(open, delta)
  }

  function closeBlock({ index }: JsonObject): void {
    if (open === undefined || index !== blocks.length - 1)
      fail('out_of_order', 'a content_block_stop without its block')
    open = undefined
  }

  function addMessageDelta(data: JsonObject): void {
    if (!isObject(data.delta)) fail('bad_frame', 'message_delta holds no delta')
    last = merged(last, data.delta)
    for (const name of BESIDE_DELTA) if (data[name] != null) start = { ...start, [name]: data[name] }
    if (!isObject(data.usage)) {
      replayable = false
      return
    }
    usage = { ...usage, ...knownCounts(data.usage) }
    tokens.see(data.usage)
  }

  function take(data: JsonObject): void {
    const { type } = data
    if (type === 'error')
      throw new Undecodable(upstreamFailed(errorIn(data) ?? { type: null, message: '', code: null, param: null }))
    if (!KNOWN.has(type)) return
    if (ended) fail('out_of_order', `${String(type)} after message_stop`)
    if (type === 'message_start') begin(data)
    else if (start === undefined) fail('out_of_order', `${String(type)} before message_start`)
    else if (type === 'content_block_start') openBlock(data)
    else if (type === 'content_block_delta') addDelta(data)
    else if (type === 'content_block_stop') closeBlock(data)
    else if (open !== undefined) fail('out_of_order', `${String(type)} inside a content block`)
    else if (type === 'message_delta') addMessageDelta(data)
    else if (asString(last.stop_reason) === null) fail('truncated', 'message_stop without a stop_reason')
    else ended = true
  }

  return {
    push(frame: SseFrame) {
      if (failure !== undefined || frame.data === undefined || frame.data === '' || frame.event === 'ping') return
      const { event, data: text } = frame
      const stopped = decoding(() => {
        const data = dataOf(event, text, frame.badUtf8)
        // Official clients pass over a frame without its event line, and would miss what is in it.
        if (event === undefined) replayable = false
        if (data.type !== 'ping') take(data)
      })
      if (stopped !== undefined) failure = stopped
    },

    get failure() {
      return failure
    },

    get progress() {
      return { ...progressOf(blocks), ending: ended || last.stop_reason !== undefined, replayable }
    },

    finish(): Decoded {
      if (failure !== undefined) return failure
      return decoding(() => {
        if (start === undefined) fail('empty', 'the stream ended before message_start')
        if (!ended) fail('truncated', 'the stream ended before message_stop')
        const { answer, body } = messageOf({ start, last, blocks, usage })
        return decodedAnswer(messagesCandidate(body, answer, tokens), body, replayable)
      })
    },
  }
}

function dataOf(event: string | undefined, text: string, badUtf8: boolean | undefined): JsonObject {
  if (badUtf8) fail('not_utf8', 'a frame is not UTF-8')
  const data = event !== undefined && KEEPS_TEXT.has(event) ? tryParseJson(text) : tryParse(text)
  if (!isObject(data)) fail('not_json', 'a frame is not a JSON object')
  if (event !== undefined && event !== data.type)
    fail('bad_frame', `the event line says ${event}, the data ${String(data.type)}`)
  return data
}

const KNOWN: ReadonlySet<unknown> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
])

function startOf({ message }: JsonObject): JsonObject {
  if (!isObject(message)) return fail('bad_frame', 'message_start holds no message')
  if (!isArray(message.content) || message.content.length > 0) fail('bad_frame', 'message_start has content')
  return message
}

function progressOf(blocks: readonly OpenBlock[]) {
  return {
    // Appending shares what is there; joining would copy the whole text at every frame.
    text: blocks.reduce((all, { shell, text }) => (shell.type === 'text' ? all + text : all), ''),
    toolCalls: blocks.filter(({ shell }) => shell.type === 'tool_use').length,
    choices: blocks.length > 0 ? 1 : 0,
  }
}

/** A block that begins, with what its start says already. */
function openedBlock(data: JsonObject): OpenBlock {
  const shell = isObject(data.content_block)
    ? data.content_block
    : fail('bad_frame', 'content_block_start holds no block')
  return {
    shell,
    text: asString(shell.text) ?? '',
    thinking: asString(shell.thinking) ?? '',
    signature: undefined,
    input: undefined,
    citations: [...asArray(shell.citations)],
  }
}

/** Deltas of types that are not known are passed over, as the official client does. */
function addToBlock(block: OpenBlock, delta: JsonObject): void {
  const of = (type: string): void => {
    if (block.shell.type !== type) fail('bad_frame', `a ${String(delta.type)} in a block that is not ${type}`)
  }
  const text = (value: Json | undefined): string =>
    asString(value) ?? fail('bad_frame', `a ${String(delta.type)} without text`)
  switch (delta.type) {
    case 'text_delta':
      of('text')
      block.text += text(delta.text)
      break
    case 'thinking_delta':
      of('thinking')
      block.thinking += text(delta.thinking)
      break
    case 'signature_delta':
      of('thinking')
      block.signature = text(delta.signature)
      break
    case 'input_json_delta':
      block.input = (block.input ?? '') + text(delta.partial_json)
      break
    case 'citations_delta':
      of('text')
      block.citations.push(delta.citation ?? null)
      break
    case 'compaction_delta': {
      // It brings the whole of the block, null where the compaction failed.
      of('compaction')
      const { content = null, encrypted_content: sealed } = delta
      block.shell = { ...block.shell, content, ...(sealed === undefined ? {} : { encrypted_content: sealed }) }
      break
    }
  }
}

interface Parts {
  start: JsonObject
  /** The members of its last deltas. */
  last: JsonObject
  blocks: readonly OpenBlock[]
  usage: JsonObject
}

/** The message as in an answer that was not streamed. */
function messageOf({ start, last, blocks, usage }: Parts) {
  const finish = asString(last.stop_reason) ?? ''
  const answer = blocks.map((block, i) => closed(block, i === blocks.length - 1 && CUT_SHORT.has(finish)))
  const body = {
    ...start,
    content: answer.map(({ block }) => block),
    stop_reason: finish,
    stop_sequence: last.stop_sequence ?? null,
    ...(last.stop_details === undefined ? {} : { stop_details: last.stop_details }),
    ...(isObject(last.container) ? { container: last.container } : {}),
    usage,
  }
  return { answer, body }
}

function closed({ shell, text, thinking, signature, input, citations }: OpenBlock, mayBeCut: boolean): AnswerBlock {
  if (shell.type === 'text') return { block: { ...shell, text, ...(citations.length > 0 ? { citations } : {}) } }
  if (shell.type === 'thinking')
    return { block: { ...shell, thinking, ...(signature === undefined ? {} : { signature }) } }
  if (input === undefined) return { block: shell }
  if (input === '') return { block: { ...without(shell, 'input'), input: {} } }
  if (isObject(tryParse(input))) return { block: { ...shell, input: verbatim(input) }, input }
  // A token limit can end an answer inside its last tool input; the text that came stays in the candidate.
  if (mayBeCut && isCutJson(input)) return { block: { ...shell, input: {} }, input }
  return fail('bad_tool_json', 'the input of a tool call does not parse to an object')
}
