import { parseJson, writeJson } from '../json-text.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isArray, isObject, without } from '../json-value.ts'
import { sseFrame } from '../sse-frame.ts'
import { textPieces } from '../text-pieces.ts'
import { knownCounts } from './usage.ts'

/** Input of these blocks is streamed; every other block goes whole into its start frame. */
const STREAMED_INPUT = new Set(['tool_use', 'server_tool_use'])

function frame(data: JsonObject): Uint8Array {
  return sseFrame(asString(data.type) ?? undefined, data)
}

/** The frames of a stream that a client turns back into the given answer; the body must be one that `decodeMessages` accepts. */
export function emitMessages(body: Uint8Array): Uint8Array[] {
  const message = asObject(parseJson(body))
  const usage = asObject(message.usage)
  const frames = [frame({ type: 'message_start', message: head(message, usage) })]
  asArray(message.content).forEach((block, index) => {
    if (isObject(block)) frames.push(...blockFrames(block, index))
  })
  frames.push(
    frame({ type: 'message_delta', delta: end(message), usage: knownCounts(usage) }),
    frame({ type: 'message_stop' }),
  )
  return frames
}

function head(message: JsonObject, usage: JsonObject): JsonObject {
  return {
    ...without(message, 'stop_details'),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    ...('container' in message ? { container: null } : {}),
    // The input side is known already; the output is counted up from its first token.
    usage: {
      ...usage,
      ...('output_tokens' in usage ? { output_tokens: Math.min(1, Number(usage.output_tokens) || 0) } : {}),
    },
  }
}

function end({ stop_reason, stop_sequence, stop_details, container }: JsonObject): JsonObject {
  return {
    stop_reason,
    stop_sequence: stop_sequence ?? null,
    ...(stop_details === undefined ? {} : { stop_details }),
    ...(isObject(container) ? { container } : {}),
  }
}

function blockFrames(block: JsonObject, index: number): Uint8Array[] {
  const deltas = deltasOf(block)
  return [
    frame({ type: 'content_block_start', index, content_block: deltas === undefined ? block : shellOf(block) }),
    ...(deltas ?? []).map(delta => frame({ type: 'content_block_delta', index, delta })),
    frame({ type: 'content_block_stop', index }),
  ]
}

/** Text in a start frame would be doubled by clients, so what is streamed starts empty. */
function shellOf(block: JsonObject): JsonObject {
  if (block.type === 'text') return { ...block, text: '', ...(isArray(block.citations) ? { citations: [] } : {}) }
  if (block.type === 'thinking') return { ...block, thinking: '', signature: '' }
  if (block.type === 'compaction') return { ...block, content: null }
  return { ...block, input: {} }
}

/** The deltas of a block that is streamed in parts, undefined for one that goes whole. */
function deltasOf(block: JsonObject): JsonObject[] | undefined {
  if (block.type === 'text') {
    return [
      ...textPieces(asString(block.text) ?? '').map(text => ({ type: 'text_delta', text })),
      ...asArray(block.citations).map(citation => ({ type: 'citations_delta', citation })),
    ]
  }
  if (block.type === 'thinking') {
    const signature = asString(block.signature) ?? ''
    return [
      ...textPieces(asString(block.thinking) ?? '').map(thinking => ({ type: 'thinking_delta', thinking })),
      // Clients overwrite the signature, so it comes once, whole and last.
      ...(signature === '' ? [] : [{ type: 'signature_delta', signature }]),
    ]
  }
  if (block.type === 'compaction') {
    const { content = null, encrypted_content: sealed } = block
    return [{ type: 'compaction_delta', content, ...(sealed === undefined ? {} : { encrypted_content: sealed }) }]
  }
  if (!STREAMED_INPUT.has(String(block.type)) || !isObject(block.input)) return undefined
  const input: Json = block.input
  return ['', writeJson(input)].map(partial_json => ({ type: 'input_json_delta', partial_json }))
}
