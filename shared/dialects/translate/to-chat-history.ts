import { writeJson } from '../json-text.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asObject, asString, isArray, isObject } from '../json-value.ts'
import type { Ledger } from './ledger.ts'
import { PDF, toDataUrl, UNTITLED_PDF } from './media.ts'

/** The system text; undefined when the request has none. */
export function readSystem(system: Json | undefined, book: Ledger): string | undefined {
  if (system === undefined || typeof system === 'string') return system
  if (system === null) {
    book.drop('system')
    return undefined
  }
  if (!isArray(system)) book.refuse('system', 'expected text or a list of blocks')
  const texts = (isArray(system) ? system : []).map((block, i) => readText(asObject(block), `system[${i}]`, book))
  return texts.length === 0 ? undefined : texts.join('\n\n')
}

/** Turns as chat messages; results of tools become messages of their own. */
export function readMessagesHistory(messages: Json | undefined, stripThinking: boolean, book: Ledger): JsonObject[] {
  if (!isArray(messages)) {
    book.refuse('messages', 'expected a list')
    return []
  }
  if (asObject(messages.at(-1)).role === 'assistant') {
    book.refuse('messages', 'a last turn of the assistant would be answered, not continued')
  }
  return messages.flatMap((item, i) => {
    const path = `messages[${i}]`
    const message = asObject(item)
    book.only(message, path, ['role', 'content'])
    const { role, content } = message
    if (role === 'system' && book.lenient) {
      const text = readSystem(content, book)
      return text === undefined ? [] : [{ role, content: text }]
    }
    if (role !== 'user' && role !== 'assistant') {
      book.refuse(`${path}.role`, 'expected user or assistant')
      return []
    }
    if (typeof content === 'string') return [{ role, content }]
    if (!isArray(content)) {
      book.refuse(`${path}.content`, 'expected text or a list of blocks')
      return []
    }
    const blocks = content.map(asObject)
    const at = `${path}.content`
    return role === 'user' ? readUser(blocks, at, book) : readAssistant(blocks, at, stripThinking, book)
  })
}

function readUser(blocks: readonly JsonObject[], path: string, book: Ledger): JsonObject[] {
  const results: JsonObject[] = []
  const parts: JsonObject[] = []
  /** Of tools, whose chat messages hold text alone. */
  const images: JsonObject[] = []
  blocks.forEach((block, i) => {
    const at = `${path}[${i}]`
    if (block.type !== 'tool_result') {
      const part = readUserBlock(block, at, book)
      if (part !== undefined) parts.push(part)
      return
    }
    // Chat wants the results right after the calls, so what stood before them would change its place.
    if (parts.length > 0) book.advise(at, 'a tool result after other content of the same turn', 'before the content')
    results.push(readToolResult(block, at, images, book))
  })
  parts.unshift(...images)
  return parts.length === 0 ? results : [...results, { role: 'user', content: parts }]
}

function readText(block: JsonObject, path: string, book: Ledger): string {
  if (block.type !== 'text' || typeof block.text !== 'string') {
    book.refuse(path, 'only text can stand here')
    return ''
  }
  book.only(block, path, ['type', 'text', 'cache_control', 'citations'])
  if (block.cache_control !== undefined) book.drop(`${path}.cache_control`)
  // Where an earlier answer took its words from has no place in the chat dialect and no effect on the next one.
  if (block.citations !== undefined) book.drop(`${path}.citations`)
  return block.text
}

function readUserBlock(block: JsonObject, path: string, book: Ledger): JsonObject | undefined {
  if (block.type === 'text') return { type: 'text', text: readText(block, path, book) }
  if (block.type === 'image') return readImage(block, path, book)
  if (block.type === 'document') return readDocument(block, path, book)
  book.refuse(path, `the chat dialect has no ${String(block.type)} block`)
  return undefined
}

function readImage(block: JsonObject, path: string, book: Ledger): JsonObject | undefined {
  const source = asObject(block.source)
  book.only(block, path, ['type', 'source', 'cache_control'])
  if (block.cache_control !== undefined) book.drop(`${path}.cache_control`)
  const { type, url, media_type: mediaType, data } = source
  if (type === 'url' && typeof url === 'string') {
    book.only(source, `${path}.source`, ['type', 'url'])
    return { type: 'image_url', image_url: { url } }
  }
  if (type === 'base64' && typeof mediaType === 'string' && typeof data === 'string') {
    book.only(source, `${path}.source`, ['type', 'media_type', 'data'])
    return { type: 'image_url', image_url: { url: toDataUrl({ mediaType, base64: data }) } }
  }
  book.refuse(`${path}.source`, 'expected a URL or base64 data')
  return undefined
}

function readDocument(block: JsonObject, path: string, book: Ledger): JsonObject | undefined {
  const source = asObject(block.source)
  book.only(block, path, ['type', 'source', 'cache_control', 'citations', 'title'])
  if (block.cache_control !== undefined) book.drop(`${path}.cache_control`)
  if (isObject(block.citations) && block.citations.enabled === true)
    book.refuse(`${path}.citations`, 'the chat dialect cannot cite')
  else if (block.citations !== undefined) book.drop(`${path}.citations`)
  const { type, media_type: mediaType, data } = source
  const title = asString(block.title)
  if (type === 'text' && typeof data === 'string') {
    book.only(source, `${path}.source`, ['type', 'media_type', 'data'])
    if (title !== null) book.advise(`${path}.title`, 'a text has no title in the chat dialect', 'its first line')
    return { type: 'text', text: title === null ? data : `${title}\n\n${data}` }
  }
  if (type === 'base64' && mediaType === PDF && typeof data === 'string') {
    book.only(source, `${path}.source`, ['type', 'media_type', 'data'])
    return {
      type: 'file',
      file: { filename: title ?? UNTITLED_PDF, file_data: toDataUrl({ mediaType, base64: data }) },
    }
  }
  book.refuse(`${path}.source`, 'expected a PDF as base64, or text')
  return undefined
}

function readToolResult(block: JsonObject, path: string, images: JsonObject[], book: Ledger): JsonObject {
  book.only(block, path, ['type', 'tool_use_id', 'content', 'is_error', 'cache_control'])
  if (block.cache_control !== undefined) book.drop(`${path}.cache_control`)
  if (asString(block.tool_use_id) === null) book.refuse(`${path}.tool_use_id`, 'expected text')
  const { content } = block
  let text = asString(content) ?? ''
  if (isArray(content))
    text = content
      .map((one, i) => {
        const part = asObject(one)
        const at = `${path}.content[${i}]`
        if (part.type !== 'image' || !book.lenient) return readText(part, at, book)
        const image = readImage(part, at, book)
        if (image !== undefined) images.push(image)
        book.advise(at, 'only text can stand here', 'a message of the user')
        return ''
      })
      .join('')
  else if (content !== undefined && content !== null && typeof content !== 'string')
    book.refuse(`${path}.content`, 'expected text')
  return { role: 'tool', tool_call_id: block.tool_use_id, content: block.is_error === true ? `Error: ${text}` : text }
}

function readAssistant(
  blocks: readonly JsonObject[],
  path: string,
  stripThinking: boolean,
  book: Ledger,
): JsonObject[] {
  const texts: string[] = []
  const calls: JsonObject[] = []
  blocks.forEach((block, i) => {
    const at = `${path}[${i}]`
    if (block.type === 'text') {
      if (calls.length > 0) book.advise(at, 'text after a tool call of the same turn', 'before the calls')
      texts.push(readText(block, at, book))
    } else if (block.type === 'tool_use') calls.push(readToolUse(block, at, book))
    else if (block.type !== 'thinking' && block.type !== 'redacted_thinking') {
      book.refuse(at, `the chat dialect has no ${String(block.type)} block`)
    } else if (stripThinking) book.drop(at)
    else book.advise(at, 'thinking of another provider (thinking_policy="strip" would leave it out)')
  })
  if (texts.length === 0 && calls.length === 0) {
    // Nothing was left of the turn but thinking that the policy takes out.
    return []
  }
  const content = texts.length > 1 ? texts.map(text => ({ type: 'text', text })) : (texts[0] ?? null)
  return [{ role: 'assistant', content, ...(calls.length === 0 ? {} : { tool_calls: calls }) }]
}

function readToolUse(block: JsonObject, path: string, book: Ledger): JsonObject {
  const { id, name, input, caller } = block
  book.only(block, path, ['type', 'id', 'name', 'input', 'cache_control', 'caller'])
  if (block.cache_control !== undefined) book.drop(`${path}.cache_control`)
  if (caller !== undefined) {
    if (caller === null || asObject(caller).type === 'direct') book.drop(`${path}.caller`)
    else book.refuse(`${path}.caller`, 'only a call by the model itself can be translated')
  }
  if (asString(id) === null) book.refuse(`${path}.id`, 'expected text')
  if (asString(name) === null) book.refuse(`${path}.name`, 'expected text')
  if (!isObject(input)) book.refuse(`${path}.input`, 'expected an object')
  return { id, type: 'function', function: { name, arguments: writeJson(input ?? null) } }
}
