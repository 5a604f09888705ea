/**
 * Controls, what is not drawn, and marks that turn the order of the letters around them: in a text of a model or a vendor they could make a
 * line read as another. Tab and line feed stay, and what joins letters and emoji.
 */
const UNSEEN = /(?!\u200c|\u200d|\ufe0e|\ufe0f)[\p{Cc}\p{DI}\p{Zl}\p{Zp}]/gu

/** A text of a stranger with what is not seen in it made visible. */
export function visible(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(UNSEEN, mark =>
      mark === '\n' || mark === '\t'
        ? mark
        : `\u27e8U+${mark.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}\u27e9`,
    )
}

/** The text of a JSON value, indented; a text that is JSON is indented where that changes nothing in it, as it would a long number. */
export function prettyJson(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value, null, 2) ?? 'nothing'
  if (!/^[[{]/.test(value)) return value
  try {
    const read: unknown = JSON.parse(value)
    return JSON.stringify(read) === value ? JSON.stringify(read, null, 2) : value
  } catch {
    return value
  }
}
