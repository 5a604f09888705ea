import type { Json, JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isArray } from '../json-value.ts'
import type { Ledger } from './ledger.ts'

interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  content: Json
  refusal?: string
  tool_calls?: JsonObject[]
  tool_call_id?: Json | undefined
}

const ROLES: Readonly<Record<string, 'system' | 'user' | 'assistant'>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
}

/** The bookkeeping of an item, which says nothing to a model. */
const KEPT_BY_PROVIDER = ['id', 'status', 'phase', 'internal_chat_message_metadata_passthrough']

/** The items of an input as chat messages; calls of tools stand in the message that they came with. */
export function readResponsesInput(input: Json | undefined, stripThinking: boolean, book: Ledger): JsonObject[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  if (!isArray(input)) {
    book.refuse('input', 'expected text or a list of items')
    return []
  }
  const messages: Message[] = []

  function addCall(call: JsonObject): void {
    const last = messages.at(-1)
    if (last?.role !== 'assistant') messages.push({ role: 'assistant', content: null, tool_calls: [call] })
    else if (last.tool_calls === undefined) last.tool_calls = [call]
    else last.tool_calls.push(call)
  }

  /** Images that tools gave follow as the user's, after the results of all calls of the turn. */
  let images: JsonObject[] = []
  function addResult(item: JsonObject, path: string): void {
    const { text, shown } = readOutput(item.output, path, book)
    messages.push({ role: 'tool', tool_call_id: item.call_id, content: text })
    for (const image of shown) images.push(image)
  }
  function showImages(): void {
    if (images.length > 0) messages.push({ role: 'user', content: images })
    images = []
  }

  input.forEach((one, i) => {
    const path = `input[${i}]`
    const item = asObject(one)
    const type = asString(item.type) ?? (asString(item.role) === null ? 'item_reference' : 'message')
    if (!type.endsWith('_call_output')) showImages()
    switch (type) {
      case 'message': {
        const message = readMessage(item, path, book)
        const last = messages.at(-1)
        if (message.role !== 'assistant' || last?.tool_calls === undefined) {
          messages.push(message)
          break
        }
        // A chat message has its text before its calls.
        book.advise(path, 'text after a call of the same turn', 'before the calls')
        // Not by a join, which would copy all of it for each item.
        last.content = (asString(last.content) ?? '') + (asString(message.content) ?? '')
        break
      }
      case 'function_call':
        handle(item, path, ['type', 'call_id', 'name', 'arguments'], book)
        addCall({ id: item.call_id, type: 'function', function: { name: item.name, arguments: item.arguments } })
        break
      case 'custom_tool_call':
        handle(item, path, ['type', 'call_id', 'name', 'input'], book)
        addCall({ id: item.call_id, type: 'custom', custom: { name: item.name, input: item.input } })
        break
      case 'function_call_output':
      case 'custom_tool_call_output':
        handle(item, path, ['type', 'call_id', 'output'], book)
        addResult(item, path)
        break
      case 'reasoning':
        if (stripThinking || item.encrypted_content == null) book.drop(path)
        else book.advise(path, 'only the provider that made it can read this reasoning')
        break
      default:
        book.refuse(path, `only the Responses API has an item of type ${type}`)
    }
  })
  showImages()
  return messages.map(message => ({ ...message }))
}

/** Refuses what an item holds beside these members; its bookkeeping is dropped. */
function handle(item: JsonObject, path: string, names: readonly string[], book: Ledger): void {
  book.only(item, path, [...names, ...KEPT_BY_PROVIDER])
  for (const name of KEPT_BY_PROVIDER) if (item[name] !== undefined) book.drop(`${path}.${name}`)
}

function readMessage(item: JsonObject, path: string, book: Ledger): Message {
  handle(item, path, ['type', 'role', 'content'], book)
  const role = ROLES[String(item.role)]
  if (role === undefined) book.refuse(`${path}.role`, 'expected user, assistant, system or developer')
  if (typeof item.content === 'string') return { role: role ?? 'user', content: item.content }
  if (!isArray(item.content)) book.refuse(`${path}.content`, 'expected text or a list of parts')
  const parts = asArray(item.content).map(asObject)
  const refusals = parts.filter(part => part.type === 'refusal').map(part => asString(part.refusal) ?? '')
  const said = parts.flatMap((part, i) => {
    if (part.type === 'refusal' && role === 'assistant') return []
    const made = readPart(part, `${path}.content[${i}]`, book)
    return made === undefined ? [] : [made]
  })
  const texts = said.map(part => asString(part.text))
  const joined = texts.every(text => text !== null) ? texts.join(role === 'system' ? '\n\n' : '') : undefined
  // Text alone goes as text, which every host takes.
  const content = role === 'user' && said.length > 1 ? said : (joined ?? said)
  if (role === 'assistant' && joined === undefined) book.refuse(`${path}.content`, 'only text can stand here')
  if (refusals.length === 0) return { role: role ?? 'user', content }
  return { role: 'assistant', content: joined === '' ? null : content, refusal: refusals.join('') }
}

function readPart(part: JsonObject, path: string, book: Ledger): JsonObject | undefined {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
      return readTextPart(part, path, book)
    case 'input_image':
      return readImage(part, path, book)
    case 'input_file':
      return readFile(part, path, book)
    default:
      book.refuse(path, `the other dialect has no ${String(part.type)} part`)
      return undefined
  }
}

function readTextPart(part: JsonObject, path: string, book: Ledger): JsonObject {
  book.only(part, path, ['type', 'text', 'annotations', 'logprobs'])
  for (const name of ['annotations', 'logprobs']) if (part[name] !== undefined) book.drop(`${path}.${name}`)
  if (typeof part.text !== 'string') book.refuse(`${path}.text`, 'expected text')
  return { type: 'text', text: part.text }
}

function readImage(part: JsonObject, path: string, book: Ledger): JsonObject | undefined {
  book.only(part, path, ['type', 'image_url', 'detail'])
  const { image_url: url, detail } = part
  if (typeof url !== 'string') {
    book.refuse(path, 'an image without its data or address is known to its provider alone')
    return undefined
  }
  return { type: 'image_url', image_url: { url, ...(detail == null ? {} : { detail }) } }
}

function readFile(part: JsonObject, path: string, book: Ledger): JsonObject | undefined {
  book.only(part, path, ['type', 'filename', 'file_data'])
  const { filename, file_data: data } = part
  if (typeof data !== 'string') {
    book.refuse(path, 'only a file that brings its data can be translated')
    return undefined
  }
  return { type: 'file', file: { ...(filename == null ? {} : { filename }), file_data: data } }
}

/** What a tool gave: its text, which is all that a chat message of a tool has, and images, which the user shows. */
function readOutput(output: Json | undefined, path: string, book: Ledger): { text: string; shown: JsonObject[] } {
  const shown: JsonObject[] = []
  if (typeof output === 'string') return { text: output, shown }
  if (!isArray(output)) book.refuse(`${path}.output`, 'expected text or a list of parts')
  const texts = asArray(output).map((one, i) => {
    const part = asObject(one)
    const at = `${path}.output[${i}]`
    if (part.type === 'input_text' || part.type === 'output_text') return asString(readTextPart(part, at, book).text)
    const image = part.type === 'input_image' && book.lenient ? readImage(part, at, book) : undefined
    if (image !== undefined) {
      book.advise(at, 'only text can stand here', 'a message of the user')
      shown.push(image)
    } else book.refuse(at, 'only text can stand here')
    return ''
  })
  return { text: texts.join(''), shown }
}
