import { toBase64, utf8 } from '../../shared/sign/bytes.ts'
import { secretForms } from '../../shared/sign/secret-forms.ts'
import type { Connector, Credential } from './definition.ts'

const MASK = '***'
/** In a failure nothing is lost with a word too many; in a result a short secret would blank out ordinary words. */
export const IN_FAILURES = 4
export const IN_RESULTS = 8

/** Takes the secrets of a credential that have so many characters out of a text, in each form in which a vendor may repeat them. */
export function redaction({ keys }: Connector, { values }: Credential, least: number): (text: string) => string {
  const secret = new Set(keys.flatMap(({ name, secret }) => (secret ? [name] : [])))
  const plain = Object.entries(values).flatMap(([name, value]) =>
    secret.has(name) || OAUTH_SECRETS.has(name) ? [value] : [],
  )
  const names = Object.entries(values).flatMap(([name, value]) => (secret.has(name) ? [] : [value]))
  const forms = plain
    .filter(value => value.length >= least)
    .flatMap(value => [...secretForms(value), ...names.map(name => toBase64(utf8(`${name}:${value}`)))])
  const all = [...new Set(forms)].toSorted((a, b) => b.length - a.length)
  return text => all.reduce((made, form) => (made.includes(form) ? made.replaceAll(form, MASK) : made), text)
}

const OAUTH_SECRETS = new Set(['accessToken', 'refreshToken', 'clientSecret'])
