/** The origin of a web page, as browsers send it; undefined for anything else, a wildcard among it. */
export function readOrigin(text: string): string | undefined {
  if (!URL.canParse(text) || text.includes('*')) return undefined
  const { origin, protocol } = new URL(text)
  return /^https?:$/.test(protocol) && origin === text.replace(/\/$/, '').toLowerCase() ? origin : undefined
}
