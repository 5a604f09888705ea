import type { Json, JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isObject } from '../json-value.ts'

/** Pieces of text by the event that carries them: the member that numbers the text within its item, and what announces it. */
const TEXTS: Readonly<Record<string, { slot: string; index?: 'content_index' | 'summary_index' }>> = {
  'response.output_text': { slot: 'output_text', index: 'content_index' },
  'response.refusal': { slot: 'refusal', index: 'content_index' },
  'response.reasoning_text': { slot: 'reasoning_text', index: 'content_index' },
  'response.reasoning_summary_text': { slot: 'summary_text', index: 'summary_index' },
  'response.function_call_arguments': { slot: 'arguments' },
  'response.custom_tool_call_input': { slot: 'input' },
}
const PARTS: Readonly<Record<string, 'content_index' | 'summary_index'>> = {
  'response.content_part.added': 'content_index',
  'response.reasoning_summary_part.added': 'summary_index',
}

interface Item {
  id: Json | undefined
  type: Json | undefined
  /** How many of each kind have been announced; they are numbered in their order. */
  parts: Map<string, number>
  done: boolean
}

/** Follows the events of a stream as official clients do: whether they could build the answer from them, and would build the same. */
export function eventSequence() {
  const items: Item[] = []
  const streamed = new Map<string, string>()
  let began = false
  let sound = true

  function see(type: string, event: JsonObject): boolean {
    if (type === 'response.created') {
      if (began) return false
      began = isObject(event.response)
      return began
    }
    if (!began) return false
    if (type === 'response.output_item.added') return addItem(event)
    if (event.output_index === undefined) return true
    const at = Number(event.output_index)
    const item = items[at]
    if (item === undefined || item.done || !isOf(item, event.item_id)) return false
    const part = PARTS[type]
    if (part !== undefined) return addPart(item, part, event[part])
    if (type === 'response.output_text.annotation.added')
      return addPart(item, `annotation of ${String(event.content_index)}`, event.annotation_index)
    if (type === 'response.output_item.done') {
      item.done = true
      return isOf(item, asObject(event.item).id) && asObject(event.item).type === item.type
    }
    return seeText(type, event, at, item)
  }

  function addItem({ output_index, item }: JsonObject): boolean {
    if (output_index !== items.length || !isObject(item)) return false
    items.push({ id: item.id, type: item.type, parts: new Map(), done: false })
    return true
  }

  function addPart({ parts }: Item, kind: string, index: Json | undefined): boolean {
    const known = parts.get(kind) ?? 0
    parts.set(kind, known + 1)
    return index === known
  }

  function seeText(type: string, event: JsonObject, at: number, item: Item): boolean {
    const isDelta = type.endsWith('.delta')
    const kind = isDelta || type.endsWith('.done') ? TEXTS[type.slice(0, type.lastIndexOf('.'))] : undefined
    if (kind === undefined) return true
    const { slot, index } = kind
    if (index !== undefined && !(Number(event[index]) < (item.parts.get(index) ?? 0))) return false
    const key = index === undefined ? `${at} ${slot}` : `${at} ${slot} ${String(event[index])}`
    const before = streamed.get(key) ?? ''
    if (!isDelta) return before === (event[MEMBERS[slot] ?? 'text'] ?? before)
    streamed.set(key, before + (asString(event.delta) ?? ''))
    return typeof event.delta === 'string'
  }

  return {
    push(type: string, event: JsonObject): void {
      sound &&= see(type, event)
    },
    get isSound(): boolean {
      return sound
    },
    /** Whether the items of the last event are those that were streamed; it may leave them out. */
    fits(response: JsonObject): boolean {
      const output = asArray(response.output).map(asObject)
      if (output.length === 0) return sound && items.every(({ done }) => done)
      if (!sound || items.length !== output.length) return false
      if (!items.every((item, i) => isOf(item, output[i]!.id) && item.type === output[i]!.type)) return false
      const whole = new Map(output.flatMap(textsOf))
      return [...streamed].every(([key, text]) => whole.get(key) === text)
    },
  }
}

/** Where the event that ends a text has it. */
const MEMBERS: Readonly<Record<string, string>> = { refusal: 'refusal', arguments: 'arguments', input: 'input' }

/** Hosts may leave ids out. */
const isOf = ({ id }: Item, given: Json | undefined): boolean => (id ?? '') === (given ?? id ?? '')

function textsOf(item: JsonObject, at: number): [string, string][] {
  const calls = ['arguments', 'input'].map((slot): [string, string] => [`${at} ${slot}`, asString(item[slot]) ?? ''])
  const parts = [...asArray(item.content), ...asArray(item.summary)].map(asObject)
  const places = [...asArray(item.content).keys(), ...asArray(item.summary).keys()]
  const texts = parts.map((part, i): [string, string] => [
    `${at} ${String(part.type)} ${places[i]}`,
    asString(part[MEMBERS[String(part.type)] ?? 'text']) ?? '',
  ])
  return [...calls, ...texts]
}
