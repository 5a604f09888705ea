import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { VerifyReport } from '../../shared/wire/router/checkpoint.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import { serveRouter } from '../host/node.ts'
import { openStoreToRead } from '../host/open-store.ts'
import { publishedKeys, trustedKeys } from '../traces/keys.ts'
import { traceStore } from '../traces/store.ts'
import { storedCheckpoints, storedRecords } from '../traces/stored-records.ts'
import { verifyRecords } from '../traces/verify.ts'

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

interface DemoUpstream {
  origin: string
  close(): Promise<void>
}

/** A provider on a free loopback port: the smallest model answers with nothing, the others with one sentence. */
async function demoUpstream(): Promise<DemoUpstream> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { model } = readJson(Buffer.concat(chunks).toString()) as { model: string }
    const text = model === 'small' ? '' : 'Paris is the capital of France.'
    const body = JSON.stringify({
      id: `msg_demo_${model}`,
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1200, output_tokens: 220 },
    })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Three rungs at 1/5, 3/15 and 15/75 USD per million tokens (docs/spec/router.md §11.3). */
const demoConfig = (origin: string) => `version = 1
price = [
  { model = "demo/small", input_per_mtok = 1, output_per_mtok = 5 },
  { model = "demo/medium", input_per_mtok = 3, output_per_mtok = 15 },
  { model = "demo/large", input_per_mtok = 15, output_per_mtok = 75 },
]
provider = [{ id = "demo", dialect = "messages", base_url = "${origin}", auth = "none" }]
[[route]]
match = {}
mode = "enforce"
ladder = ["demo/small", "demo/medium", "demo/large"]
gates = ["non-empty"]
`

/** Every figure in which a demo differs from docs/spec/router.md §11.3; empty when none does. */
export function demoDifferences(status: number, trace: TraceRecord, report: VerifyReport): string[] {
  const [first, second] = trace.attempts
  const { final } = trace
  const figures: [what: string, got: unknown, expected: unknown][] = [
    ['status', status, 200],
    ['attempts', trace.attempts.length, 2],
    ['first attempt', first?.verdict, 'fail'],
    ['its cost', first?.cost, 0.0023],
    ['second attempt', second?.verdict, 'pass'],
    ['its cost', second?.cost, 0.0069],
    ['served rung', final.served_rung, 1],
    ['escalations', final.escalations, 1],
    ['total cost', final.total_cost_usd, 0.0092],
    ['baseline', final.baseline_same_token_usd, 0.0345],
    ['savings', final.savings_usd, 0.0253],
    ['chain valid', report.valid, true],
    ['records in the chain', report.records, 1],
    ['records behind the last checkpoint', report.tenants[0]?.unanchored_tail, 0],
  ]
  return figures
    .filter(([, got, expected]) => got !== expected)
    .map(([what, got, expected]) => `${what}: expected ${String(expected)}, got ${String(got)}`)
}
