/** Control characters, line ends and marks of direction: `\p{C}` and the two separators. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** One line for a terminal. It may quote what a stranger wrote: nothing of it moves the cursor or turns the text around. */
export function visible(text: string): string {
  return text.replace(UNSEEN, found => `\\u{${found.codePointAt(0)?.toString(16)}}`)
}
