import { asObject, asString, isObject, tryParse } from '../../../shared/dialects/json-value.ts'
import type { SseFrame } from '../../../shared/http/sse-read.ts'
import { NOT_AN_OBJECT } from '../../execution/models/tool-arguments.ts'

/**
 * Holds back the pieces of each tool input of a messages stream until the input is whole, and gives them on as one piece that
 * is a JSON object whatever the model wrote: an answer is not lost over one call that could not be read.
 */
export function wholeToolInputs(): (frame: SseFrame) => readonly SseFrame[] {
  let held: { index: unknown; text: string } | undefined
  return frame => {
    const { event } = frame
    if (event === 'content_block_start') {
      const data = dataOf(frame)
      held = asObject(data.content_block).type === 'tool_use' ? { index: data.index, text: '' } : undefined
      return [frame]
    }
    if (held === undefined) return [frame]
    if (event === 'content_block_delta') {
      const { index, delta } = dataOf(frame)
      const piece = index === held.index ? asString(asObject(delta).partial_json) : null
      if (piece === null) return [frame]
      held.text += piece
      return []
    }
    if (event !== 'content_block_stop') return [frame]
    const { index, text } = held
    held = undefined
    return text === '' ? [frame] : [inputFrame(index, text), frame]
  }
}

function dataOf({ data }: SseFrame) {
  return asObject(data === undefined ? undefined : tryParse(data))
}

function inputFrame(index: unknown, text: string): SseFrame {
  const partial_json = isObject(tryParse(text)) ? text : JSON.stringify({ [NOT_AN_OBJECT]: text.slice(0, 500) })
  const data = { type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json } }
  return { raw: new Uint8Array(0), event: 'content_block_delta', data: JSON.stringify(data), badUtf8: false }
}
