import { tryParsePlain } from '../json-text.ts'
import type { Json, JsonObject } from '../json-value.ts'
import { asArray, asObject, asString, isObject } from '../json-value.ts'

/** What a request leaves to its provider to know: a conversation that it keeps, and reasoning that no other provider can read. */
export interface HeldState {
  /** Ids of the response and of the conversation that it goes on with, of a prompt that is kept, and of items that it names without their content. */
  readonly ids: readonly string[]
  /** Reasoning and summaries in a form that only their maker can read. */
  readonly sealed: readonly string[]
}

/** The state that a request names. */
export interface NamedState extends HeldState {
  /** Each call of it adds to a conversation, so that it cannot be asked twice. */
  readonly appends: boolean
}

/** The state in a request; undefined where it brings all that it is about. */
export function heldByRequest(body: Uint8Array): NamedState | undefined {
  const request = asObject(tryParsePlain(body))
  const items = asArray(request.input).map(asObject)
  const references = items.filter(isReference).map(({ id }) => id)
  const ids = texts([request.previous_response_id, conversationOf(request), asObject(request.prompt).id, ...references])
  const sealed = texts(items.map(item => item.encrypted_content))
  return ids.length + sealed.length === 0
    ? undefined
    : { ids, sealed, appends: (conversationOf(request) ?? null) !== null }
}

/** What of an answer a later request may name. */
export function heldByAnswer(body: Uint8Array): HeldState {
  const response = asObject(tryParsePlain(body))
  const items = asArray(response.output).map(asObject)
  return {
    ids: texts([response.id, conversationOf(response), ...items.map(({ id }) => id)]),
    sealed: texts(items.map(item => item.encrypted_content)),
  }
}

function conversationOf({ conversation }: JsonObject): Json | undefined {
  return isObject(conversation) ? conversation.id : conversation
}

/** The type of a reference may be left out. */
function isReference({ type, role, id }: JsonObject): boolean {
  return type === 'item_reference' || (typeof id === 'string' && (type ?? null) === null && role === undefined)
}

const texts = (values: readonly (Json | undefined)[]): string[] =>
  values.flatMap(value => {
    const text = asString(value)
    return text === null || text === '' ? [] : [text]
  })
