import { secretForms } from '../../../shared/sign/secret-forms.ts'

const MASK = '***'
/** In a failure nothing is lost with a word too many; in a result a short secret would blank out ordinary words. */
const IN_FAILURES = 4
const IN_RESULTS = 8

export interface Redactor {
  /** A failure in words. */
  text(text: string): string
  /** A result. */
  json(value: unknown): unknown
}

/** Takes the values that a server is greeted with out of what it says. */
export function redactValues(secrets: readonly string[]): Redactor {
  const forms = secrets
    // `Bearer <token>` is a header's value, and the token alone is as secret.
    .flatMap(secret => [secret, ...secretForms(secret.slice(secret.indexOf(' ') + 1))])
    .toSorted((a, b) => b.length - a.length)
  const hide = (text: string, least: number) =>
    forms.reduce((made, form) => (form.length >= least ? made.replaceAll(form, MASK) : made), text)

  function hideIn(value: unknown): unknown {
    if (typeof value === 'string') return hide(value, IN_RESULTS)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(hideIn)
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [hide(key, IN_RESULTS), hideIn(one)]))
  }

  return {
    text: text => hide(text, IN_FAILURES),
    json: value => (forms.length === 0 ? value : hideIn(value)),
  }
}
