export interface DataUrl {
  readonly mediaType: string
  readonly base64: string
}

/** Image types that both dialects take. */
export const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
export const PDF = 'application/pdf'

/** The file name for a document that came without a title, as the chat dialect wants one. */
export const UNTITLED_PDF = 'document.pdf'

export function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(',')
  const [mediaType, ...parameters] = url.slice(5, comma).split(';')
  if (!/^data:/i.test(url) || comma < 0 || parameters.at(-1)?.toLowerCase() !== 'base64') return undefined
  return { mediaType: mediaType?.toLowerCase() ?? '', base64: url.slice(comma + 1) }
}

export function toDataUrl({ mediaType, base64 }: DataUrl): string {
  return `data:${mediaType};base64,${base64}`
}
