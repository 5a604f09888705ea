import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mailMessage } from './catalogue/gmail.ts'

/** Reads a message as a mail program does, by Node's own decoders. */
function read(raw: string) {
  const text = Buffer.from(raw, 'base64url').toString('latin1')
  const [head = '', body = ''] = text.split('\r\n\r\n')
  const headers = head.replaceAll('\r\n ', ' ').split('\r\n')
  const subject = headers.find(line => line.startsWith('Subject: '))!.slice('Subject: '.length)
  const words = [...subject.matchAll(/=\?UTF-8\?B\?([^?]*)\?=/g)].map(([, word = '']) => Buffer.from(word, 'base64'))
  return {
    lines: text.split('\r\n'),
    headers,
    subject: words.length === 0 ? subject : Buffer.concat(words).toString(),
    // Each word has to be whole characters for a reader that decodes them one by one.
    wordByWord: words.map(word => word.toString()).join(''),
    body: Buffer.from(body, 'base64').toString(),
  }
}

describe('a mail message', () => {
  it('says what it was told to say, whatever that is', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 200 }).filter(text => !/[\r\n\0]/.test(text)),
        fc.string({ unit: 'grapheme', maxLength: 400 }),
        (subject, body) => {
          const found = read(mailMessage({ to: 'a@b.example', subject, body }))
          expect(found.subject).toBe(subject.toWellFormed())
          if (found.wordByWord !== '') expect(found.wordByWord).toBe(subject.toWellFormed())
          expect(found.body.replaceAll('\r\n', '\n')).toBe(body.toWellFormed().replace(/\r\n|\r/g, '\n'))
          expect(found.headers).toHaveLength(5)
          for (const line of found.lines) expect(line.length).toBeLessThanOrEqual(998)
        },
      ),
    )
  })

  it('is made of encoded words of at most 75 characters', () => {
    const { lines } = read(mailMessage({ to: 'a@b.example', subject: '日本語のとても長い件名'.repeat(9), body: '' }))
    const words = lines.flatMap(line => line.match(/=\?\S+\?=/g) ?? [])
    expect(words.length).toBeGreaterThan(5)
    for (const word of words) expect(word.length).toBeLessThanOrEqual(75)
  })

  it.each([
    [{ to: 'a@b.example\r\nBcc: c@d.example', subject: 's' }, 'to: must not have line breaks'],
    [{ to: 'a@b.example', subject: 's\nX-Evil: 1' }, 'subject: must not have line breaks'],
    [{ to: 'Jürgen <a@b.example>', subject: 's' }, 'to: expected addresses in ASCII'],
  ])('takes no header that somebody wrote into an argument: %j', (given, message) => {
    expect(() => mailMessage({ body: '', ...given })).toThrow(message)
  })
})
