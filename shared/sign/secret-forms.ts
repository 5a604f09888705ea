import { toBase64, toHex, utf8 } from './bytes.ts'

/** In a failure nothing is lost with a word too many; in a result a short secret would blank out ordinary words. */
export const IN_FAILURES = 4
export const IN_RESULTS = 8

/** A text without these forms of secrets, of which the longest comes first. */
export function maskForms(text: string, forms: readonly string[]): string {
  return forms.reduce((made, form) => (made.includes(form) ? made.replaceAll(form, '***') : made), text)
}

/** Less of an encoded secret than this could be part of anything. */
const LEAST = 8

/**
 * The forms in which a secret usually turns up again: as it is, in JSON, in an address, in base64 wherever it stands in what was encoded, in
 * hexadecimal and backwards. The longest comes first, so that no other form leaves a part of it behind.
 */
export function secretForms(secret: string): string[] {
  const bytes = utf8(secret)
  const base64 = [0, 1, 2].flatMap(before => {
    const text = toBase64(new Uint8Array([...new Uint8Array(before), ...bytes]))
    // Only the characters that nothing before or behind it has a part in.
    const own = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')]
  })
  const hex = toHex(bytes)
  const encoded = [...base64, hex, hex.toUpperCase(), [...secret].reverse().join('')]
  const plain = [secret, encodeURIComponent(secret.toWellFormed()), JSON.stringify(secret).slice(1, -1)]
  return [...new Set([...plain, ...encoded.filter(form => form.length >= LEAST)])].toSorted(
    (a, b) => b.length - a.length,
  )
}
