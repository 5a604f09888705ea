import { type Decoded, type DialectName, saysSomething } from '../../../shared/dialects/candidate.ts'
import { readContent } from '../../../shared/dialects/chat/answer.ts'
import { dialects } from '../../../shared/dialects/dialects.ts'
import { asArray, asObject, asString, isObject, tryParse } from '../../../shared/dialects/json-value.ts'
import { type SseFrame, sseReader } from '../../../shared/http/sse-read.ts'
import { joined } from '../../../shared/sign/bytes.ts'
import { NOT_AN_OBJECT } from '../../execution/models/tool-arguments.ts'
import type { AnswerMeter } from './answer-meter.ts'

/** What is read in one go holds this thread meanwhile: these are more characters than any model says at once. */
const MAX_WHOLE_BYTES = 4 * 1024 * 1024
const MAX_FRAME_BYTES = 1024 * 1024
/** A stream spends a hundred bytes on a word. */
const MAX_STREAM_BYTES = 64 * 1024 * 1024
const LARGE_BYTES = 256 * 1024
/** After the last event the connection is given this long to end by itself, so that it can be used again. */
const END_MS = 250

export interface Listener {
  onDelta?: ((text: string) => void) | undefined
  onResponseId?: ((id: string) => void) | undefined
  /** Reads along, for the case that no answer comes of it. */
  meter: AnswerMeter
  /** Told at every chunk: the other side is alive, and so much longer is its answer. */
  alive: (bytes: number) => void
  /** Told at every piece that is more than a sign of life. */
  said: () => void
  /** Hears the comments of a stream. */
  onComment?: (text: string) => void
  /** A read that is under way ends with its reason. */
  signal: AbortSignal
}

export type ReadAnswer = Decoded

/** Reads an answer, streamed or not: a host that does not stream answers whole, and that is as good. */
export async function readAnswer(answer: Response, dialect: DialectName, listener: Listener): Promise<ReadAnswer> {
  if (answer.body === null) return { ok: false, reason: 'empty', detail: 'the body is empty' }
  const streamed = /^text\/event-stream\b/i.test(answer.headers.get('content-type') ?? '')
  const reader = answer.body.getReader()
  try {
    return streamed ? await readStream(reader, dialect, listener) : await readWhole(reader, dialect, listener)
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

type Reader = ReadableStreamDefaultReader<Uint8Array>

function tooLarge(what: string, bytes: number): ReadAnswer {
  return { ok: false, reason: 'not_an_answer', detail: `${what} is over ${bytes} bytes` }
}

async function readWhole(reader: Reader, dialect: DialectName, listener: Listener): Promise<ReadAnswer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await next(reader, listener.signal)
    if (done) break
    listener.alive(value.length)
    if (value.some(isInk)) listener.said()
    chunks.push(value)
    listener.meter.bytes(value.length)
    size += value.length
    if (size > MAX_WHOLE_BYTES) return tooLarge('the answer', MAX_WHOLE_BYTES)
  }
  const body = joined(chunks)
  listener.meter.whole(body)
  // A large one is read a second time: others have their turn in between.
  if (size > LARGE_BYTES) await new Promise(resolve => setTimeout(resolve, 0))
  const decoded = dialects[dialect].decodeJson(body)
  if (!decoded.ok) return decoded
  const { id, choices } = decoded.candidate
  if (id !== null) listener.onResponseId?.(id)
  const text = choices[0]?.text ?? ''
  if (text !== '') listener.onDelta?.(text)
  return decoded
}

async function readStream(reader: Reader, dialect: DialectName, listener: Listener): Promise<ReadAnswer> {
  const frames = sseReader({ maxFrameBytes: MAX_FRAME_BYTES })
  const accumulator = dialects[dialect].accumulator()
  const mended = dialect === 'messages' ? wholeToolInputs() : (frame: SseFrame) => [frame]
  const hear = hearing(dialect, listener)
  let size = 0
  let over = false
  while (accumulator.failure === undefined) {
    const { done, value } = over ? await lastRead(reader) : await next(reader, listener.signal)
    if (done) break
    listener.alive(value.length)
    size += value.length
    if (size > MAX_STREAM_BYTES) return tooLarge('the answer', MAX_STREAM_BYTES)
    for (const frame of frames.push(value)) {
      hear(frame)
      if (frame.data === undefined) listener.onComment?.(new TextDecoder().decode(frame.raw))
      listener.meter.frame(frame)
      for (const one of mended(frame)) accumulator.push(one)
      if (isLast(frame)) over = true
    }
    if (frames.tooLarge) return tooLarge('an event of the answer', MAX_FRAME_BYTES)
  }
  return accumulator.finish({ incomplete: frames.rest().incomplete })
}

function isLast({ event, data }: SseFrame): boolean {
  return event === 'message_stop' || data?.trim() === '[DONE]'
}

/** JSON may be preceded by any amount of white space, which some hosts send to keep a connection open. */
const isInk = (byte: number) => byte > 0x20

/** Gives out the text and the id of a passing stream; what it cannot read is for the accumulator to judge. */
function hearing(dialect: DialectName, { onDelta, onResponseId, said }: Listener): (frame: SseFrame) => void {
  let named = onResponseId === undefined
  return ({ data }) => {
    if (data === undefined) return
    const event = asObject(tryParse(data))
    if (saysSomething(dialect, event)) said()
    if (named && onDelta === undefined) return
    const id = named ? null : asString(dialect === 'messages' ? asObject(event.message).id : event.id)
    if (id !== null && id !== '') {
      named = true
      onResponseId?.(id)
    }
    const text = dialect === 'messages' ? messagesText(event) : chatText(event)
    if (text !== null && text !== '') onDelta?.(text)
  }
}

function messagesText(event: ReturnType<typeof asObject>): string | null {
  const delta = asObject(event.delta)
  return event.type === 'content_block_delta' && delta.type === 'text_delta' ? asString(delta.text) : null
}

function chatText(event: ReturnType<typeof asObject>): string {
  const choice = asArray(event.choices)
    .map(asObject)
    .find(({ index = 0 }) => index === 0)
  return readContent(asObject(choice?.delta).content).text
}

/** The next chunk, or the reason of the signal: not every body ends because its request was given up. */
function next(reader: Reader, signal: AbortSignal): Promise<ReadableStreamReadResult<Uint8Array>> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    reader
      .read()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', stop))
  })
}

async function lastRead(reader: Reader): Promise<ReadableStreamReadResult<Uint8Array>> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const enough = new Promise<ReadableStreamReadResult<Uint8Array>>(resolve => {
    timer = setTimeout(() => resolve({ done: true, value: undefined }), END_MS)
  })
  // A connection that breaks after the last event took nothing of the answer with it.
  const read = reader.read().catch(() => ({ done: true, value: undefined }) as const)
  return Promise.race([read, enough]).finally(() => clearTimeout(timer))
}

/**
 * Holds back the pieces of each tool input of a messages stream until the input is whole, and gives them on as one piece that
 * is a JSON object whatever the model wrote: an answer is not lost over one call that could not be read.
 */
function wholeToolInputs(): (frame: SseFrame) => readonly SseFrame[] {
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
