/**
 * A text from outside as one that a statement can carry. Half of a surrogate pair has no UTF-8 form and ends the process
 * in the local driver, and a text column ends at a NUL.
 */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD')
}
