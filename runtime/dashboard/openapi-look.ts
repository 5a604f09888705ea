import { z } from 'zod'
import { MOST_DOCUMENT_CHARACTERS } from '../../shared/wire/runtime/connector.ts'
import type { Surveying } from '../connectors/openapi/survey.ts'

export const openapiLook = z.strictObject({ openapi: z.string().max(MOST_DOCUMENT_CHARACTERS) })

/** What an install of a document could have, without installing it: it is read by the same code. */
export async function lookIntoOpenapi(text: string): Promise<Surveying> {
  // Few ever need the reader of YAML and what is behind it.
  const { survey } = await import('../connectors/openapi/survey.ts')
  return survey(text)
}
