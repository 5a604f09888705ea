import { utf8 } from './bytes.ts'
import { sha256 } from './sha256.ts'

/** Compares two secrets in a time that tells nothing about where they differ, nor how long the expected one is. */
export function equalSecrets(given: string, expected: string): boolean {
  const [a, b] = [sha256(utf8(given)), sha256(utf8(expected))]
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ b[i]!
  return difference === 0
}
