import { asObject, asString, type JsonObject } from '../json-value.ts'

/** The model that the provider goes on with after the one before it declined. The start of a stream cannot name it yet. */
export const fallbackOf = ({ type, to }: JsonObject): string | null =>
  type === 'fallback' ? asString(asObject(to).model) : null
