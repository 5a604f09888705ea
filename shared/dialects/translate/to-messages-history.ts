import { verbatim } from '../json-text.ts'
import { asArray, asObject, asString, isArray, isObject, type Json, type JsonObject, tryParse } from '../json-value.ts'
import { type CallIds, callIds } from '../messages/messages.ts'
import type { Ledger } from './ledger.ts'
import { IMAGE_TYPES, PDF, readDataUrl, UNTITLED_PDF } from './media.ts'

interface Turn {
  readonly role: 'user' | 'assistant'
  /** In a user turn the results of tools stand before anything else. */
  readonly results: JsonObject[]
  readonly content: JsonObject[]
}

/** Chat messages as a system text and turns that alternate. */
export function readChatHistory(
  messages: Json | undefined,
  book: Ledger,
): { system: string | JsonObject[] | undefined; turns: Json[] } {
  const system: JsonObject[] = []
  const turns: Turn[] = []
  const ids = callIds()
  if (!isArray(messages)) book.refuse('messages', 'expected a list')

  function add(role: Turn['role'], blocks: readonly JsonObject[], path: string): void {
    let turn = turns.at(-1)
    if (turn?.role !== role) {
      turn = { role, results: [], content: [] }
      turns.push(turn)
    }
    const areResults = blocks[0]?.type === 'tool_result'
    if (areResults && turn.content.length > 0)
      book.advise(path, 'a tool result after the text of the same turn', 'before the text')
    const list = areResults ? turn.results : turn.content
    for (const block of blocks) list.push(block)
  }

  asArray(messages).forEach((item, i) => {
    const path = `messages[${i}]`
    const message = asObject(item)
    switch (message.role) {
      case 'system':
      case 'developer':
        if (turns.length > 0) book.advise(path, 'a system message after the first turn', 'part of the system text')
        for (const block of readSystem(message, path, book)) system.push(block)
        break
      case 'user':
        book.only(message, path, ['role', 'content'])
        add('user', visible(readParts(message.content, path, book, readUserPart), path, book), path)
        break
      case 'assistant':
        add('assistant', visible(readAssistant(message, path, ids, book), path, book), path)
        break
      case 'tool':
        add('user', [readToolResult(message, path, ids, book)], path)
        break
      default:
        book.refuse(`${path}.role`, 'expected system, developer, user, assistant or tool')
    }
  })
  if (turns.length > 0 && turns[0]?.role !== 'user') book.refuse('messages', 'the first turn is not the user’s')
  if (turns.at(-1)?.role === 'assistant')
    book.refuse('messages', 'a last turn of the assistant would be continued, not answered')
  return { system: system.length === 0 ? undefined : asText(system, '\n\n'), turns: turns.map(wholeTurn) }
}

const wholeTurn = ({ role, results, content }: Turn): Json => ({ role, content: [...results, ...content] })

function readSystem(message: JsonObject, path: string, book: Ledger): JsonObject[] {
  book.only(message, path, ['role', 'content'])
  return readParts(message.content, path, book, readTextPart)
}

/** Blocks of plain text as one text; what else they are or say of themselves needs them apart. */
function asText(blocks: JsonObject[], between: string): string | JsonObject[] {
  const isPlain = blocks.every(({ type, cache_control: hint }) => type === 'text' && hint === undefined)
  return isPlain ? blocks.map(block => asString(block.text) ?? '').join(between) : blocks
}

/** A turn must show something: the messages dialect has no empty one. */
function visible(blocks: readonly JsonObject[], path: string, book: Ledger): readonly JsonObject[] {
  if (blocks.length === 0) book.refuse(path, 'a turn without content')
  return blocks
}

/** Where a client that knows the other dialect marks what is to be cached. */
const hints = ({ lenient }: Ledger) => (lenient ? ['cache_control'] : [])
const cacheHint = ({ cache_control: hint }: JsonObject, { lenient }: Ledger): JsonObject =>
  lenient && isObject(hint) ? { cache_control: hint } : {}

type PartReader = (part: JsonObject, path: string, book: Ledger) => JsonObject | undefined

/** Content as blocks; blank text is left out, as the messages dialect does not take it. */
function readParts(content: Json | undefined, path: string, book: Ledger, read: PartReader): JsonObject[] {
  if (typeof content === 'string') return content.trim() === '' ? [] : [{ type: 'text', text: content }]
  if (!isArray(content)) {
    if (content !== undefined && content !== null) book.refuse(`${path}.content`, 'expected text or a list of parts')
    return []
  }
  return content.flatMap((part, i) => {
    const at = `${path}.content[${i}]`
    const block = read(asObject(part), at, book)
    if (block?.type !== 'text' || asString(block.text)?.trim() !== '') return block === undefined ? [] : [block]
    book.drop(at)
    return []
  })
}

function readTextPart(part: JsonObject, path: string, book: Ledger): JsonObject | undefined {
  if (part.type !== 'text' || typeof part.text !== 'string') {
    book.refuse(path, 'only text can stand here')
    return undefined
  }
  book.only(part, path, ['type', 'text', ...hints(book)])
  return { type: 'text', text: part.text, ...cacheHint(part, book) }
}

function readUserPart(part: JsonObject, path: string, book: Ledger): JsonObject | undefined {
  if (part.type === 'image_url') return readImage(part, path, book)
  if (part.type === 'file') return readFile(part, path, book)
  if (part.type === 'text') return readTextPart(part, path, book)
  book.refuse(path, `the messages dialect has no ${String(part.type)} part`)
  return undefined
}

function readImage(part: JsonObject, path: string, book: Ledger): JsonObject | undefined {
  const image = asObject(part.image_url)
  book.only(part, path, ['type', 'image_url', ...hints(book)])
  book.only(image, `${path}.image_url`, ['url', 'detail'])
  if (image.detail !== undefined) book.drop(`${path}.image_url.detail`)
  const url = asString(image.url) ?? ''
  const hint = cacheHint(part, book)
  if (/^https?:\/\//i.test(url)) return { type: 'image', source: { type: 'url', url }, ...hint }
  const data = readDataUrl(url)
  if (data !== undefined && IMAGE_TYPES.has(data.mediaType)) {
    return { type: 'image', source: { type: 'base64', media_type: data.mediaType, data: data.base64 }, ...hint }
  }
  book.refuse(`${path}.image_url.url`, 'expected an http URL or a base64 png, jpeg, gif or webp')
  return undefined
}

function readFile(part: JsonObject, path: string, book: Ledger): JsonObject | undefined {
  const file = asObject(part.file)
  book.only(part, path, ['type', 'file'])
  book.only(file, `${path}.file`, ['file_data', 'filename'])
  const data = readDataUrl(asString(file.file_data) ?? '')
  if (data?.mediaType !== PDF) {
    book.refuse(`${path}.file`, 'only the data of a PDF can be translated')
    return undefined
  }
  const title = asString(file.filename)
  return {
    type: 'document',
    source: { type: 'base64', media_type: PDF, data: data.base64 },
    ...(title === null || title === UNTITLED_PDF ? {} : { title }),
  }
}

function readAssistant(message: JsonObject, path: string, ids: CallIds, book: Ledger): JsonObject[] {
  book.only(message, path, ['role', 'content', 'refusal', 'tool_calls', 'annotations'])
  if (message.annotations !== undefined) book.drop(`${path}.annotations`)
  const blocks = readParts(message.content, path, book, (part, at) => {
    if (part.type === 'thinking') {
      book.advise(at, 'thinking of another provider')
      return undefined
    }
    if (part.type !== 'refusal') return readTextPart(part, at, book)
    book.only(part, at, ['type', 'refusal'])
    return { type: 'text', text: asString(part.refusal) ?? '' }
  })
  const refusal = asString(message.refusal) ?? ''
  if (refusal !== '') blocks.push({ type: 'text', text: refusal })
  asArray(message.tool_calls).forEach((call, i) => {
    blocks.push(readToolCall(asObject(call), `${path}.tool_calls[${i}]`, ids, book))
  })
  return blocks
}

function readToolCall(call: JsonObject, path: string, ids: CallIds, book: Ledger): JsonObject {
  const fn = asObject(call.function)
  if (call.type !== 'function') book.refuse(path, 'only calls of functions can be translated')
  // Clients that put an answer back into the history keep the place it had in the stream.
  book.only(call, path, ['id', 'type', 'function', 'index'])
  if (call.index !== undefined) book.drop(`${path}.index`)
  book.only(fn, `${path}.function`, ['name', 'arguments'])
  const input = toolInput(asString(fn.arguments) ?? '')
  if (input === undefined) book.refuse(`${path}.function.arguments`, 'expected the text of a JSON object')
  const id = asString(call.id)
  if (id === null) book.refuse(`${path}.id`, 'expected text')
  return { type: 'tool_use', id: ids.ofCall(id ?? ''), name: fn.name, input }
}

/** The text of a call's arguments as an input with the same bytes; no text at all means no arguments. */
export function toolInput(text: string): JsonObject | undefined {
  if (text.trim() === '') return {}
  return isObject(tryParse(text)) ? verbatim(text) : undefined
}

function readToolResult(message: JsonObject, path: string, ids: CallIds, book: Ledger): JsonObject {
  book.only(message, path, ['role', 'content', 'tool_call_id'])
  const id = asString(message.tool_call_id)
  if (id === null) book.refuse(`${path}.tool_call_id`, 'expected text')
  const readPart = book.lenient ? readUserPart : readTextPart
  const blocks = typeof message.content === 'string' ? [] : readParts(message.content, path, book, readPart)
  const content = typeof message.content === 'string' ? message.content : asText(blocks, '')
  return { type: 'tool_result', tool_use_id: ids.ofResult(id ?? ''), content }
}
