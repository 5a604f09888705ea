import { nearest } from '../../shared/wire/nearest.ts'

/** The end of a sentence about an unknown word. */
export function suggestion(word: string, known: Iterable<string>): string {
  const meant = nearest(word, known)
  return meant === undefined ? '' : ` - did you mean "${meant}"?`
}
