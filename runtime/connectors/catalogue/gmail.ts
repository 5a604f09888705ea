import { z } from 'zod'
import { toBase64, toBase64Url, utf8 } from '../../../shared/sign/bytes.ts'
import { int, text } from '../../../shared/wire/bounds.ts'
import { ArgumentError } from '../argument-error.ts'
import { type Connector, composed, type Vendor } from '../definition.ts'
import { path } from '../path.ts'
import { arrayAt, at, rateLimitProblem, textAt } from '../read-body.ts'
import { bearer, oauthKeys } from '../sign-in.ts'
import { VendorFailure } from '../vendor-failure.ts'

const MESSAGES = '/gmail/v1/users/me/messages'
const LABELS = '/gmail/v1/users/me/labels'
const HEADERS = ['From', 'To', 'Subject', 'Date']
const cursor = text(1, 4096).optional()

/** Lists answer ids only: what a reader wants to see is asked for message by message, as fast as the rate rule lets it. */
async function messages(vendor: Vendor, query: { q?: string; maxResults: number; pageToken?: string | undefined }) {
  const { body } = await vendor.send({ path: MESSAGES, query })
  const ids = arrayAt(body, 'messages').flatMap(one => textAt(one, 'id') ?? [])
  const found = await Promise.all(
    ids.map(async id => {
      const query = { format: 'metadata', metadataHeaders: HEADERS }
      try {
        return [summary((await vendor.send({ path: `${MESSAGES}${path`/${id}`}`, query })).body)]
      } catch (error) {
        // It was deleted since.
        if (error instanceof VendorFailure && error.status === 404) return []
        throw error
      }
    }),
  )
  return {
    body: { messages: found.flat(), resultSizeEstimate: at(body, 'resultSizeEstimate') ?? found.length },
    next: textAt(body, 'nextPageToken'),
  }
}

function summary(message: unknown) {
  const headers = arrayAt(message, 'payload', 'headers')
  const header = (name: string) =>
    textAt(
      headers.find(one => textAt(one, 'name')?.toLowerCase() === name),
      'value',
    )
  return {
    id: at(message, 'id'),
    threadId: at(message, 'threadId'),
    labelIds: at(message, 'labelIds'),
    from: header('from'),
    to: header('to'),
    subject: header('subject'),
    date: header('date'),
    snippet: at(message, 'snippet'),
  }
}

/** The id of a label by its name, which is made where there is none. */
async function labelId(vendor: Vendor, name: string): Promise<string> {
  const { body } = await vendor.send({ path: LABELS })
  const known = arrayAt(body, 'labels').find(one => textAt(one, 'name')?.toLowerCase() === name.toLowerCase())
  const found = textAt(known, 'id')
  if (found !== undefined) return found
  const made = await vendor.send({ method: 'POST', path: LABELS, json: { name } })
  const id = textAt(made.body, 'id')
  if (id === undefined) throw new VendorFailure({ status: made.status, message: 'the label was not created' })
  return id
}

export const gmail: Connector = {
  id: 'gmail',
  name: 'Gmail',
  auth: ['oauth2'],
  keys: oauthKeys,
  origin: () => 'https://gmail.googleapis.com',
  authorize: ({ values }) => bearer(values.accessToken),
  problem: rateLimitProblem,
  rate: { concurrent: 5 },
  probe: { request: () => ({ path: '/gmail/v1/users/me/profile' }), account: body => textAt(body, 'emailAddress') },
  actions: {
    list_messages: composed({
      about: 'Lists the messages of the mailbox, newest first.',
      effect: 'read',
      arguments: z.object({ limit: int(1, 100).default(20), cursor }),
      run: ({ limit, cursor }, vendor) => messages(vendor, { maxResults: limit, pageToken: cursor }),
    }),
    list_recent: composed({
      about: 'Lists recent messages; what is recent is a Gmail query, by default the last day.',
      effect: 'read',
      arguments: z.object({ query: text(1, 2000).default('newer_than:1d'), limit: int(1, 100).default(25), cursor }),
      run: ({ query, limit, cursor }, vendor) => messages(vendor, { q: query, maxResults: limit, pageToken: cursor }),
    }),
    search: composed({
      about: 'Finds messages by a Gmail query such as from:ann@example.com has:attachment.',
      effect: 'read',
      arguments: z.object({ query: text(1, 2000), limit: int(1, 100).default(10), cursor }),
      run: ({ query, limit, cursor }, vendor) => messages(vendor, { q: query, maxResults: limit, pageToken: cursor }),
    }),
    send_message: composed({
      about: 'Sends a plain-text message, and may put a label on the copy in the mailbox or keep it out of the inbox.',
      effect: 'once',
      arguments: z.object({
        to: text(1, 2000),
        subject: text(0, 2000),
        body: text(0, 1_000_000).default(''),
        label: text(1, 225).optional(),
        skipInbox: z.boolean().default(false),
      }),
      async run({ label, skipInbox, ...message }, vendor) {
        const raw = mailMessage(message)
        // Found or made first: once the message is out, nothing should be left that can fail for a local reason.
        const labelled = label === undefined ? undefined : await labelId(vendor, label)
        const { body: sent } = await vendor.send({ method: 'POST', path: `${MESSAGES}/send`, json: { raw } })
        const id = textAt(sent, 'id')
        if (id === undefined || (labelled === undefined && !skipInbox)) return { body: sent }
        const json = {
          ...(labelled !== undefined && { addLabelIds: [labelled] }),
          ...(skipInbox && { removeLabelIds: ['INBOX'] }),
        }
        try {
          const modified = await vendor.send({ method: 'POST', path: `${MESSAGES}${path`/${id}/modify`}`, json })
          return { body: modified.body }
        } catch (error) {
          // It is sent all the same; a caller that got a failure would send it again.
          if (!(error instanceof VendorFailure)) throw error
          return { body: { ...(sent as object), warning: `sent, but its labels were not set: ${error.message}` } }
        }
      },
    }),
  },
}

interface MailMessage {
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
