import { type ApiError, invalidMember } from '../../shared/http/api-error.ts'
import { fromBase64 } from '../../shared/sign/bytes.ts'
import type { Attachment, MessageCreate } from '../../shared/wire/runtime/session.ts'

/** A text file that came with a message. */
interface TextAttachment {
  name: string
  mediaType: string
  text: string
}

/** The input of a run that is a turn: everything that the turn was given, so that a restart finds it again. */
export interface TurnInput extends Record<string, unknown> {
  message: string
  attachments?: TextAttachment[]
  turnHint?: string
  systemHint?: string
  noTools?: boolean
  readOnlyTools?: boolean
}

/** The members of a message as the input of its run; an attachment that is no text is refused. */
export function turnInput({ content, attachments = [], ...rest }: MessageCreate): TurnInput {
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined))
  return {
    message: content,
    ...(attachments.length > 0 && { attachments: attachments.map(readAttachment) }),
    ...given,
  }
}

/** What the model is sent as the user's words. */
export function userText(input: Readonly<Record<string, unknown>>): string {
  const { message, attachments = [] } = input as Partial<TurnInput>
  const files = attachments.map(
    ({ name, mediaType, text }) =>
      `<attachment name=${JSON.stringify(name)} type=${JSON.stringify(mediaType)}>\n${text}\n</attachment>`,
  )
  return [message ?? '', ...files].join('\n\n')
}

const TEXT =
  /^(?:text\/[\w.+-]+|application\/(?:[\w.-]+\+)?(?:json|xml|yaml)|application\/(?:x-ndjson|jsonl|x-yaml|toml|sql|javascript|x-javascript|typescript|x-sh|csv))$/i
const decoder = new TextDecoder('utf-8', { fatal: true })

function readAttachment({ name, mediaType, data }: Attachment, at: number): TextAttachment {
  const [type = '', ...parameters] = mediaType.split(';').map(part => part.trim())
  if (!TEXT.test(type)) {
    throw unfit(
      at,
      'mediaType',
      `${type} cannot be given to the model: send text, such as text/plain or application/json`,
    )
  }
  const charset = parameters.find(part => /^charset=/i.test(part))?.slice('charset='.length)
  if (charset !== undefined && !/^(?:utf-?8|us-ascii)$/i.test(charset)) {
    throw unfit(at, 'mediaType', `the charset ${charset} is not read here: send UTF-8`)
  }
  try {
    return { name, mediaType, text: decoder.decode(fromBase64(data)) }
  } catch (cause) {
    throw unfit(at, 'data', 'expected base64 of UTF-8 text', cause)
  }
}

function unfit(at: number, member: string, message: string, cause?: unknown): ApiError<'validation_failed'> {
  return invalidMember(`attachments.${at}.${member}`, message, cause)
}
