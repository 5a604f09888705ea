import { z } from 'zod'
import { int, text } from '../../../shared/wire/bounds.ts'
import { ArgumentError } from '../argument-error.ts'
import { type Action, action, type Connector, type Credential, list } from '../definition.ts'
import { path } from '../path.ts'
import { textAt } from '../read-body.ts'
import { basic } from '../sign-in.ts'

const number = text(1, 64)

/** Twilio sends from a number or for a messaging service: one that the call names before one of the install. */
function sender(
  given: { from?: string | undefined; messagingServiceSid?: string | undefined },
  { values }: Credential,
): { From?: string; MessagingServiceSid?: string } {
  const pick = (from?: string, service?: string) =>
    service !== undefined ? { MessagingServiceSid: service } : from !== undefined ? { From: from } : undefined
  const found = pick(given.from, given.messagingServiceSid) ?? pick(values.phoneNumber, values.messagingServiceSid)
  if (found) return found
  const message = 'needed, or messagingServiceSid, where the install has no phoneNumber or messagingServiceSid'
  throw new ArgumentError([{ path: 'from', message }])
}

function caller(from: string | undefined, { values }: Credential): string {
  const found = from ?? values.phoneNumber
  if (found !== undefined) return found
  throw new ArgumentError([{ path: 'from', message: 'needed where the install has no phoneNumber' }])
}

const sendMessage: Action = action({
  about: 'Sends a text message.',
  effect: 'once',
  arguments: z.object({
    to: number,
    body: text(1, 1600),
    from: number.optional(),
    messagingServiceSid: number.optional(),
  }),
  request: ({ to, body, from, messagingServiceSid }, credential) => ({
    method: 'POST',
    path: '/Messages.json',
    form: { To: to, Body: body, ...sender({ from, messagingServiceSid }, credential) },
  }),
})

const XML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' }
/** What XML 1.0 has no way to say. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not get through
const NOT_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g

function spoken(message: string): string {
  const escaped = message.replace(NOT_XML, '').replace(/[&<>"']/g, one => XML[one]!)
  return `<Response><Say>${escaped}</Say></Response>`
}

export const twilio: Connector = {
  id: 'twilio',
  name: 'Twilio',
  auth: ['basic'],
  keys: [
    { name: 'authToken', secret: true, usedBy: ['basic'] },
    { name: 'accountSid', usedBy: ['basic'], shape: [/^[A-Za-z0-9]{2,64}$/, 'an account SID such as AC0123…'] },
    { name: 'phoneNumber', optional: true },
    { name: 'messagingServiceSid', optional: true },
  ],
  origin: () => 'https://api.twilio.com',
  prefix: ({ values }) => path`/2010-04-01/Accounts/${values.accountSid ?? ''}`,
  authorize: ({ values }) => basic(values.accountSid, values.authToken),
  rate: { concurrent: 10 },
  probe: { request: () => ({ path: '.json' }), account: body => textAt(body, 'friendly_name') },
  actions: {
    send_sms: sendMessage,
    send_message: sendMessage,
    list_messages: list({
      about: 'Lists messages that were sent or received, newest first.',
      arguments: z.object({ limit: int(1, 1000).default(20) }),
      request({ limit, cursor }) {
        const { Page, PageToken } = Object.fromEntries(new URLSearchParams(cursor ?? ''))
        return { path: '/Messages.json', query: { PageSize: limit, Page, PageToken } }
      },
      next({ body }) {
        const next = textAt(body, 'next_page_uri')
        const query = next === undefined ? undefined : URL.parse(next, 'http://relative')?.searchParams
        const [page, token] = [query?.get('Page'), query?.get('PageToken')]
        return page && token ? new URLSearchParams({ Page: page, PageToken: token }).toString() : undefined
      },
    }),
    place_call: action({
      about: 'Places a call that says a message, or follows TwiML.',
      effect: 'once',
      arguments: z.object({
        to: number,
        from: number.optional(),
        message: text(1, 4000).optional(),
        twiml: text(1, 4000).optional(),
        statusCallback: z.url().optional(),
      }),
      request({ to, from, message, twiml, statusCallback }, credential) {
        if ((message === undefined) === (twiml === undefined)) {
          throw new ArgumentError([{ path: 'message', message: 'expected either message or twiml' }])
        }
        return {
          method: 'POST',
          path: '/Calls.json',
          form: {
            To: to,
            From: caller(from, credential),
            Twiml: twiml ?? spoken(message!),
            StatusCallback: statusCallback,
          },
        }
      },
    }),
    add_conference_participant: action({
      about: 'Calls a person into a conference; the conference begins with its first participant.',
      effect: 'once',
      arguments: z.object({ conferenceName: text(1, 128), to: number, from: number.optional() }),
      request: ({ conferenceName, to, from }, credential) => ({
        method: 'POST',
        path: path`/Conferences/${conferenceName}/Participants.json`,
        form: { To: to, From: caller(from, credential) },
      }),
    }),
  },
}
