import { toBase64, toBase64Url, utf8 } from '../../shared/sign/bytes.ts'
import { ArgumentError } from './argument-error.ts'

export interface MailMessage {
  to: string
  subject: string
  body: string
}

/** An encoded word may have 75 characters (RFC 2047 §2), so 45 bytes of text beside its `=?UTF-8?B?` and `?=`. */
const WORD_BYTES = 45
const LINE = 76

/** A plain-text message in the form of RFC 5322, as base64url of its bytes. */
export function mailMessage({ to, subject, body }: MailMessage): string {
  const text = toBase64(utf8(body.toWellFormed().replace(/\r\n|\r|\n/g, '\r\n')))
  const lines = [
    `To: ${address(to)}`,
    `Subject: ${encodedSubject(subject)}`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset="UTF-8"',
    'Content-Transfer-Encoding: base64',
    '',
    ...(text.match(new RegExp(`.{1,${LINE}}`, 'g')) ?? ['']),
  ]
  return toBase64Url(utf8(lines.join('\r\n')))
}

function address(to: string): string {
  refuseBreaks('to', to)
  if (/^[\x20-\x7e]+$/.test(to)) return to
  throw new ArgumentError([{ path: 'to', message: 'expected addresses in ASCII; leave out the names beside them' }])
}

function encodedSubject(subject: string): string {
  refuseBreaks('subject', subject)
  // A word that looks encoded must not be taken for one.
  if (/^[\x20-\x7e]*$/.test(subject) && !subject.includes('=?') && subject.length <= 900) return subject
  const words: string[] = []
  let word = ''
  for (const character of subject.toWellFormed()) {
    if (utf8(word + character).length > WORD_BYTES) {
      words.push(word)
      word = ''
    }
    word += character
  }
  return [...words, word].map(one => `=?UTF-8?B?${toBase64(utf8(one))}?=`).join('\r\n ')
}

/** A line break would begin a header of the caller's own making. */
function refuseBreaks(path: string, value: string): void {
  if (/[\r\n\0]/.test(value)) throw new ArgumentError([{ path, message: 'must not have line breaks' }])
}
