import { asObject, asString, type JsonObject } from '../json-value.ts'

/** Stop reasons at which the last block may be unfinished. */
export const CUT_SHORT: ReadonlySet<string> = new Set(['max_tokens', 'model_context_window_exceeded', 'refusal'])

/** The model that the provider goes on with after the one before it declined. The start of a stream cannot name it yet. */
export const fallbackOf = ({ type, to }: JsonObject): string | null =>
  type === 'fallback' ? asString(asObject(to).model) : null
