import type { VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import type { Handed } from './verifiers.ts'

/** Where a service verifies a receipt: a foreign one, and one of the caller's own runs, which is compared with its record too. */
export const VERIFY_PATHS = ['/receipts/verify', '/v1/runs/receipts/verify'] as const

/** Sends these bytes as JSON to a path, with the key of the tenant where it is asked for. */
export type Post = (path: (typeof VERIFY_PATHS)[number], body: Buffer) => Promise<Response>

type HandedRun = Extract<Handed, { receipt: Buffer }>

const bytes = (text: string) => Buffer.from(text)

/** The very bytes of a proof in one body. */
function bodyOf({ receipt, journal }: HandedRun): Buffer {
  const rest = journal ? [bytes(',"journal":'), journal] : []
  return Buffer.concat([bytes('{"receipt":'), receipt, ...rest, bytes('}')])
}

/** What both operations say of a proof; one word where they agree. */
export async function overHttp(post: Post, handed: HandedRun): Promise<string> {
  const said = []
  for (const path of VERIFY_PATHS) said.push(await verdictOf(await post(path, bodyOf(handed))))
  return [...new Set(said)].join(' and ')
}

async function verdictOf(answer: Response): Promise<string> {
  const text = await answer.text()
  if (answer.status !== 200) return refusedAs(answer.status, text)
  const body = JSON.parse(text) as VerifyResult
  return body.valid ? 'valid' : (body.reason ?? 'no reason')
}

/** What is no proof at all is a request that is refused. */
function refusedAs(status: number, text: string): string {
  const { code } = JSON.parse(text) as { code?: string }
  const reasons: Record<string, string> = { bad_json: 'not_json', validation_failed: 'shape' }
  return (status === 400 && reasons[code ?? '']) || `${status} ${text}`
}
