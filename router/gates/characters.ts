/** Characters are code points, so that a limit means the same for every script. */
export function countChars(text: string, stopAt: number): number {
  let count = 0
  for (let at = 0; at < text.length && count < stopAt; at += width(text, at)) count += 1
  return count
}

/** The first `count` characters, never half of one. */
export function firstChars(text: string, count: number): string {
  if (text.length <= count) return text
  let at = 0
  for (let taken = 0; at < text.length && taken < count; taken += 1) at += width(text, at)
  return text.slice(0, at)
}

const width = (text: string, at: number): number => ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)
