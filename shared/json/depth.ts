/** Whether objects and arrays of a JSON text stand deeper in each other than that. */
export function isDeeper(text: string, most: number): boolean {
  if (!hasMoreBrackets(text, most)) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const one = text.charCodeAt(at)
    if (one === QUOTE) at = endOfString(text, at)
    else if (one === OPEN_BRACE || one === OPEN_BRACKET) {
      depth++
      if (depth > most) return true
    } else if (one === CLOSE_BRACE || one === CLOSE_BRACKET) depth--
  }
  return false
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Most texts have fewer brackets than they may have levels. */
function hasMoreBrackets(text: string, most: number): boolean {
  let seen = 0
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      seen++
      if (seen > most) return true
    }
  }
  return false
}

function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1
  return at
}
