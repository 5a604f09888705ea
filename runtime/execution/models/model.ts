import type { InStatement } from '@libsql/client/web'
import type { Reading } from '../call-cost.ts'
import { RunFailure } from '../failure.ts'
import type { Spent, SpentParts } from '../journal/commit.ts'

/** A tool as a model sees it. */
export interface ModelTool {
  name: string
  description: string
  /** JSON Schema of the argument object. */
  parameters: Readonly<Record<string, unknown>>
}

export interface ToolCall {
  id: string
  name: string
  arguments: Record<string, unknown>
}

/** An image that a tool gave, of a kind that every provider of images takes. */
export interface ResultImage {
  mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
  base64: string
}

export interface ToolResult {
  callId: string
  name: string
  content: string
  /** Shown to models that take images. */
  images?: readonly ResultImage[]
  failed: boolean
}

export type Message =
  | { role: 'user'; text: string }
  | {
      role: 'assistant'
      text: string
      toolCalls: readonly ToolCall[]
      /** The answer as its provider wrote it, where that provider wants it back to go on. */
      blocks?: readonly unknown[]
    }
  | { role: 'tool'; results: readonly ToolResult[] }

export interface ModelRequest {
  system: string
  messages: readonly Message[]
  tools: readonly ModelTool[]
  maxOutputTokens: number
  /** JSON Schema of the final answer, which is then the text of one JSON object. */
  outputSchema?: Readonly<Record<string, unknown>>
  temperature?: number
}

export interface ModelCall {
  /** Sent as Idempotency-Key. */
  key: string
  signal: AbortSignal
  /** What goes on as one conversation: the session of a turn, else the run. */
  session?: string
  /** Text as it comes; only where there is a listener. */
  onDelta?: (text: string) => void
  /** Told once, at the first event that names the answer: what an interrupted call could be asked for again. */
  onResponseId?: (id: string) => void
  /** Says how to find out what the call has used so far, for the case that no answer comes of it. */
  metered?: (reading: Reading) => void
  /** What it costs is limited: no model whose price is not known may stand in for the one that was asked for. */
  pricedOnly?: boolean
  /**
   * What it costs is limited: how long the answer of a model may be that stands in for one which has used so much already and gave none.
   * Undefined: none may.
   */
  standIn?: (lost: Spent) => Promise<number | undefined>
  /** An earlier call under the same key was cut off by a crash, and may have been billed. */
  repeated?: boolean
}

export interface ModelAnswer {
  text: string
  toolCalls: readonly ToolCall[]
  /** What the model shows of its reasoning; kept to be read, and sent to no model. */
  thinking?: string
  /** `pause`: the provider wants the answer back and goes on. */
  stop: 'end' | 'tools' | 'length' | 'refusal' | 'pause'
  /** Of a paused answer, as the provider wrote it. */
  blocks?: readonly unknown[]
  /** The answer could be no longer because of what the budget left. */
  cappedByBudget?: boolean
  spent: Spent
  provider: string
  /** `<provider>/<model>` as it answered. */
  model: string
  /** What of it went on what, where the call was priced by class. */
  parts?: Omit<SpentParts, 'unpricedCalls'>
  unpriced?: boolean
  /** True where nothing was asked of any model. */
  simulated?: boolean
  responseId?: string
  /** The router's receipt of this call. */
  routerTraceId?: string
  /** Gates of the router that the answer did not pass: it was served because none passed them. */
  gatesFailed?: string[]
  /** Statements that belong to the commit of this answer; each holds its own condition on the run's epoch. */
  extraStatements?: readonly InStatement[]
}

/** Rejects with a StepFailure that says whether the same call may work later; never repeats a call by itself. */
export type AskModel = (request: ModelRequest, call: ModelCall) => Promise<ModelAnswer>

/** Nano-USD of a call with so many tokens; `atMost`: whatever a cache does with them. */
export type CostOfTokens = (tokensIn: number, tokensOut: number, atMost?: boolean) => number

/** A run that waits for a rate limit. */
export interface RateLimitWait {
  signal: AbortSignal
  /** Aborted when this process ends: the next one waits. */
  drained: AbortSignal
  /** Shows in the run for how long it will wait, about; undefined once it does no more. */
  show(ms: number | undefined): Promise<void>
}

export interface FoundModel {
  /** `<provider>/<model>`. */
  id: string
  ask: AskModel
  /** Resolves once its provider's rate limit lets another call through; awaited before the call is on record. */
  ready?: (wait: RateLimitWait) => Promise<void>
  /** Whether a call that is made now has to wait for that. */
  isLimited?: () => boolean
  /** Tokens that fit into one call, where known. */
  contextTokens?: number
  /** What calls cost now; null where the price is unknown. */
  prices?: () => Promise<CostOfTokens | null>
}

export interface Models {
  /** The candidates for a manifest's `model` whose providers are configured, as one; undefined when there is none. */
  find(tenantId: string, model: string, needs: { tools: boolean }): Promise<FoundModel | undefined>
}

/** Stands where no provider serves a model: the first call of it ends the run. */
export function absentModel(id: string, why: string): FoundModel {
  return { id, ask: () => Promise.reject(new RunFailure('model_unconfigured', why)) }
}

/** More than any provider counts for one image, which it makes smaller before it looks at it. */
export const IMAGE_TOKENS = 5000

/** What providers take of one image, and of all in a request. */
const MOST_CHARACTERS = 5_000_000
const MOST_IMAGES = 20
const MOST_CHARACTERS_OF_ALL = 15_000_000
/** Pixels to a side. */
const MOST_PIXELS = 8000

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** What a tool of an MCP server gave, with a word in the place of each image, and those images that a model can be shown. */
export function withoutImages(output: unknown): { output: unknown; images: ResultImage[] } {
  const images: ResultImage[] = []
  const { content } = (output ?? {}) as { content?: unknown }
  if (!Array.isArray(content)) return { output, images }
  let isOther = false
  const worded = content.map((one: unknown) => {
    const { base64, mimeType } = encodedIn(one)
    if (base64 === undefined) return one
    const image = imageOf(base64)
    const isImage = image !== undefined || (typeof mimeType === 'string' && mimeType.startsWith('image/'))
    if (!isImage) return one
    isOther = true
    const bytes = Math.floor((base64.replace(/={1,2}$/, '').length * 3) / 4)
    if (image === undefined) return { type: 'image', mimeType, bytes, text: 'This image cannot be shown.' }
    images.push(image)
    return { type: 'image', mimeType: image.mediaType, bytes }
  })
  return isOther ? { output: { ...(output as object), content: worded }, images } : { output, images }
}

/** What an image, or a resource that may be one, has as base64. */
function encodedIn(item: unknown): { base64?: string; mimeType?: unknown } {
  const { type, ...more } = (item ?? {}) as { type?: unknown; data?: unknown; mimeType?: unknown; resource?: unknown }
  const { blob, mimeType = more.mimeType } = (more.resource ?? {}) as { blob?: unknown; mimeType?: unknown }
  const base64 = type === 'image' ? more.data : type === 'resource' ? blob : undefined
  return typeof base64 === 'string' ? { base64, mimeType } : {}
}

/** A broken image would fail the call of the model, so its first bytes are looked at. */
function imageOf(base64: string): ResultImage | undefined {
  if (base64.length > MOST_CHARACTERS || base64.length % 4 !== 0 || !BASE64.test(base64)) return undefined
  const characters = Math.ceil(HEAD_BYTES / 3) * 4
  const head = Uint8Array.from(atob(base64.slice(0, characters)), character => character.charCodeAt(0))
  const kind = imageKind(head)
  return kind === undefined || kind.pixels > MOST_PIXELS ? undefined : { mediaType: kind.mediaType, base64 }
}

interface ImageKind {
  mediaType: ResultImage['mediaType']
  /** Pixels of its longer side; 0 where its beginning does not say. */
  pixels: number
}

/** So many bytes of an image are enough: what a camera writes before the size of a JPEG has at most 64 kB in each segment. */
const HEAD_BYTES = 192 * 1024

/** What the first bytes of an image say of it; undefined for what is none of the kinds that models take. */
function imageKind(head: Uint8Array): ImageKind | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.length)
  const starts = (at: number, text: string) => [...text].every((one, i) => head[at + i] === one.charCodeAt(0))
  try {
    if (starts(0, '\x89PNG\r\n\x1a\n')) {
      return { mediaType: 'image/png', pixels: Math.max(view.getUint32(16), view.getUint32(20)) }
    }
    if (starts(0, 'GIF8')) {
      return { mediaType: 'image/gif', pixels: Math.max(view.getUint16(6, true), view.getUint16(8, true)) }
    }
    if (starts(0, '\xff\xd8\xff')) return { mediaType: 'image/jpeg', pixels: jpegPixels(view) }
    if (!starts(0, 'RIFF') || !starts(8, 'WEBP')) return undefined
    const [width, height] = webpSides(view, starts)
    return { mediaType: 'image/webp', pixels: Math.max(width, height) }
  } catch (error) {
    // It ends before it says how large it is.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** The size stands in the segment that begins a frame, behind others that say their lengths. */
function jpegPixels(view: DataView): number {
  for (let at = 2; at + 9 <= view.byteLength; at += 2 + view.getUint16(at + 2)) {
    if (view.getUint8(at) !== 0xff) return 0
    const marker = view.getUint8(at + 1)
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) return Math.max(view.getUint16(at + 5), view.getUint16(at + 7))
  }
  return 0
}

/** Lossy, lossless and extended files say it each in their own way. */
function webpSides(view: DataView, starts: (at: number, text: string) => boolean): [number, number] {
  if (starts(12, 'VP8 ')) return [view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff]
  if (starts(12, 'VP8L')) {
    const sides = view.getUint32(21, true)
    return [(sides & 0x3fff) + 1, ((sides >>> 14) & 0x3fff) + 1]
  }
  const side = (at: number) => view.getUint16(at, true) + view.getUint8(at + 2) * 65_536 + 1
  return [side(24), side(27)]
}

/** The images of a conversation that fit into one request: the newest. */
export function newestImages(messages: readonly Message[]): ReadonlySet<ResultImage> {
  const all = messages.flatMap(message =>
    message.role === 'tool' ? message.results.flatMap(({ images = [] }) => images) : [],
  )
  let length = 0
  const newest = all.slice(-MOST_IMAGES).toReversed()
  const tooMany = newest.findIndex(({ base64 }) => {
    length += base64.length
    return length > MOST_CHARACTERS_OF_ALL
  })
  return new Set(tooMany < 0 ? newest : newest.slice(0, tooMany))
}
