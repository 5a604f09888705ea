import type { Message, ResultImage } from './model.ts'

/** More than any provider counts for one image, which it makes smaller before it looks at it. */
export const IMAGE_TOKENS = 5000

/** What providers take of one image, and of all in a request. */
const MOST_CHARACTERS = 5_000_000
const MOST_IMAGES = 20
const MOST_CHARACTERS_OF_ALL = 15_000_000
/** Pixels to a side. */
const MOST_PIXELS = 8000

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** What a tool of an MCP server gave, with a word in the place of each image that a model can be shown, and those images. */
export function withoutImages(output: unknown): { output: unknown; images: ResultImage[] } {
  const images: ResultImage[] = []
  const { content } = (output ?? {}) as { content?: unknown }
  if (!Array.isArray(content)) return { output, images }
  const shown = content.map((one: unknown) => {
    const image = imageIn(one)
    if (image === undefined) return one
    images.push(image)
    return { type: 'image', mimeType: image.mediaType, bytes: bytesOf(image) }
  })
  return images.length === 0 ? { output, images } : { output: { ...(output as object), content: shown }, images }
}

const bytesOf = ({ base64 }: ResultImage): number => Math.floor((base64.replace(/=+$/, '').length * 3) / 4)

/** An image, or a resource that is one. A broken one would fail the call of the model, so its first bytes are looked at. */
function imageIn(item: unknown): ResultImage | undefined {
  const { type, data, resource } = (item ?? {}) as { type?: unknown; data?: unknown; resource?: unknown }
  const base64 =
    type === 'image' ? data : type === 'resource' ? (resource as { blob?: unknown } | null)?.blob : undefined
  if (typeof base64 !== 'string' || base64.length > MOST_CHARACTERS) return undefined
  if (base64.length % 4 !== 0 || !BASE64.test(base64)) return undefined
  const head = Uint8Array.from(atob(base64.slice(0, 64)), character => character.charCodeAt(0))
  const mediaType = kindOf(head)
  return mediaType && { mediaType, base64 }
}

function kindOf(head: Uint8Array): ResultImage['mediaType'] | undefined {
  const starts = (at: number, text: string) => [...text].every((one, i) => head[at + i] === one.charCodeAt(0))
  if (starts(0, '\x89PNG\r\n\x1a\n')) {
    const view = new DataView(head.buffer)
    const fits = head.length >= 24 && Math.max(view.getUint32(16), view.getUint32(20)) <= MOST_PIXELS
    return fits ? 'image/png' : undefined
  }
  if (starts(0, '\xff\xd8\xff')) return 'image/jpeg'
  if (starts(0, 'GIF8')) return 'image/gif'
  return starts(0, 'RIFF') && starts(8, 'WEBP') ? 'image/webp' : undefined
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

/** A message as far as it is text, and how many images it has. */
export function textAlone(message: Message): { message: Message; images: number } {
  if (message.role !== 'tool') return { message, images: 0 }
  const images = message.results.reduce((sum, result) => sum + (result.images?.length ?? 0), 0)
  if (images === 0) return { message, images }
  return { message: { ...message, results: message.results.map(({ images: _, ...result }) => result) }, images }
}
