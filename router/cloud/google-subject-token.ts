import { z } from 'zod'
import { TransportError } from '../upstream/transport.ts'
import { ask, fileOf, parsed, REMOTE_TIMEOUT_MS, type SourceDeps } from './credential-request.ts'
import { safe } from './vendor-addresses.ts'

const format = z
  .object({ type: z.enum(['text', 'json']), subject_token_field_name: z.string().min(1).optional() })
  .default({ type: 'text' })

/** Where the token of the other identity provider is: of a file or an address. Programs and keys of AWS are not read. */
export const subjectTokenSource = z.union([
  z.object({ file: z.string().min(1), format }),
  z.object({ url: z.url(), headers: z.record(z.string(), z.string()).default({}), format }),
])

/** Read for each exchange, because the platform replaces it in time. */
export async function subjectToken(deps: SourceDeps, source: z.output<typeof subjectTokenSource>): Promise<string> {
  const text = 'file' in source ? await fileOf(deps, source.file, NAME) : await fetched(deps, source)
  const { type, subject_token_field_name: field } = source.format
  if (type === 'text') return text.trim()
  const token = field && parsed(z.record(z.string(), z.unknown()), text)?.[field]
  if (typeof token !== 'string' || token === '') throw new TransportError(`${NAME} is not in the member that is named`)
  return token
}

const NAME = 'the subject token of the external account'

async function fetched(deps: SourceDeps, { url, headers }: { url: string; headers: Record<string, string> }) {
  const reply = await ask(deps, {
    name: NAME,
    url: safe(url, 'credential_source.url'),
    headers: Object.entries(headers),
    ms: REMOTE_TIMEOUT_MS,
  })
  if (reply.status !== 200) throw new TransportError(`${NAME} was not given, status ${reply.status}`)
  return reply.text
}
