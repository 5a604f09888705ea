/** Controls that JSON lets stand, and characters that turn around those after them. */
const UNSEEN = /[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** A value as JSON that a terminal shows as it is: what callers and models wrote moves no cursor and turns no line around. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(
    UNSEEN,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
