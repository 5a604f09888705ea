import { z } from 'zod'
import { isObject } from '../../../shared/dialects/json-value.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import { proposedAction } from '../../../shared/wire/runtime/approval.ts'
import { eventKinds } from '../../../shared/wire/runtime/journal.ts'
import { files } from '../../../shared/wire/runtime/manifest-parts.ts'
import { sessionEvents, sessionMessage } from '../../../shared/wire/runtime/session.ts'
import { stepRequest } from '../../../shared/wire/runtime/step-request.ts'

// What a node answers is shown to people and put beside what other nodes answer, so it is held against its form first.

const words = z.string()
const members = z.custom<Record<string, unknown>>(isObject)

const forms = {
  data: z.array(
    z.object({ id: words, input: members.optional(), output: members.optional(), errorMessage: words.optional() }),
  ),
  approvals: z.array(
    z.object({ id: words, prompt: words, action: proposedAction.optional(), comment: words.optional() }),
  ),
  turns: z.array(
    z.discriminatedUnion('event', [
      z.object({ event: z.literal('message_completed'), data: sessionEvents.message_completed }),
      z.object({ event: z.literal('message_error'), data: sessionEvents.message_error }),
    ]),
  ),
  messages: z.array(sessionMessage),
  request: z.union([stepRequest, z.object({ error: words })]),
  texts: z.object({ systemPrompt: words, files }),
  events: z.array(z.object({ hash: words, body: words })),
  /** Members that every event has; what else it holds is under its hash. */
  event: z.looseObject({
    seq: z.int().min(1),
    kind: z.enum(eventKinds),
    stepId: words,
    runId: words,
    attempt: z.int(),
    at: words,
    payload: members,
    meta: members,
  }),
}
export type Answers = { [K in keyof typeof forms]: z.output<(typeof forms)[K]> }

/** Far more than a run holds, and read in a fraction of a second; the reader of JSON lets no other request through meanwhile. */
const MOST_VALUES = 1_000_000
const MOST_LEVELS = 500

/** The value of a text from a node; undefined where it does not have this form, or takes too long to read. */
export function readAnswer<K extends keyof Answers>(kind: K, text: string): Answers[K] | undefined {
  if (!isReadable(text)) return undefined
  try {
    const value = readJson(text)
    return forms[kind].safeParse(value).success ? (value as Answers[K]) : undefined
  } catch {
    return undefined
  }
}

/** Whether a text that is JSON has no more values and levels than that. */
function isReadable(text: string): boolean {
  let [values, levels] = [0, 0]
  for (let at = 0; at < text.length; at++) {
    const one = text[at]
    if (one === '"') {
      do at = text.indexOf('"', at + 1)
      while (at > 0 && isEscaped(text, at))
      if (at < 0) return false
    } else if (one === ',' || one === '[' || one === '{') {
      values++
      if (one !== ',') levels++
      if (values > MOST_VALUES || levels > MOST_LEVELS) return false
    } else if (one === ']' || one === '}') levels--
  }
  return true
}

function isEscaped(text: string, at: number): boolean {
  let before = at
  while (text[before - 1] === '\\') before--
  return (at - before) % 2 === 1
}
