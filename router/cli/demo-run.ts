import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import type { VerifyReport } from '../../shared/wire/router/checkpoint.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import { serveRouter } from '../host/node.ts'
import { openStoreToRead } from '../host/open-store.ts'
import { publishedKeys, trustedKeys } from '../traces/keys.ts'
import { traceStore } from '../traces/store.ts'
import { storedCheckpoints, storedRecords } from '../traces/stored-records.ts'
import { verifyRecords } from '../traces/verify.ts'
import { demoConfig, demoUpstream } from './demo-upstream.ts'

export interface DemoResult {
  status: number
  trace: TraceRecord
  report: VerifyReport
  folder: string
}

const QUESTION = {
  model: 'auto',
  max_tokens: 1000,
  messages: [{ role: 'user', content: 'What is the capital of France?' }],
}

/** One request through a real router on a socket; then its store is read as any other reader would. */
export async function runDemo({ keep }: { keep: boolean }): Promise<DemoResult> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-demo-'))
  const upstream = await demoUpstream()
  try {
    const config = join(folder, 'router.toml')
    const store = join(folder, 'router.db')
    await writeFile(config, demoConfig(upstream.origin))
    // Nothing of the caller's environment takes part, so that the figures are the same everywhere.
    const router = await serveRouter({
      ROUTER_BIND: '127.0.0.1:0',
      ROUTER_CONFIG: config,
      ROUTER_DB: store,
      ROUTER_LOG: 'error',
    })
    let answer: { status: number; traceId: string | null }
    try {
      answer = await ask(router.origin)
    } finally {
      await router.close()
    }
    return { status: answer.status, folder, ...(await read(store, answer.traceId ?? '')) }
  } finally {
    await upstream.close()
    if (!keep) await rm(folder, { recursive: true, force: true })
  }
}

async function ask(origin: string) {
  const response = await fetch(`${origin}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify(QUESTION),
  })
  await response.arrayBuffer()
  return { status: response.status, traceId: response.headers.get(responseHeaders.traceId) }
}

async function read(store: string, traceId: string) {
  const db = await openStoreToRead({}, store)
  try {
    const trace = await traceStore(db).get(traceId)
    if (trace === undefined) throw new Error('the demo left no receipt')
    const report = await verifyRecords({
      records: storedRecords(db),
      checkpoints: await storedCheckpoints(db),
      keys: trustedKeys(await publishedKeys(db)),
      sha256: nativeSha256,
    })
    return { trace, report }
  } finally {
    db.close()
  }
}
