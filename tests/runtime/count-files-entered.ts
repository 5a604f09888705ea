import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveRuntime } from '../../runtime/host/node.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { filesEntered } from '../files-entered.ts'

/** Prints which source files one POST /v1/runs enters on Node, as JSON: `until` its answer, or until its `receipt` can be read. */
const [until = 'answer'] = process.argv.slice(2)
const folder = await mkdtemp(join(tmpdir(), 'waybill-files-'))
/** A model that never answers: a run that asks it holds the only slot, so that nothing executes what is only to be counted until its 201. */
const silent = createServer()
await once(silent.listen(0, '127.0.0.1'), 'listening')
const { port } = silent.address() as AddressInfo
const key = `wb_live_${'k'.repeat(43)}`
const runtime = await serveRuntime({
  PLATFORM_BIND: '127.0.0.1:0',
  PLATFORM_DATA_DIR: folder,
  PLATFORM_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  PLATFORM_BOOTSTRAP_KEY: key,
  PLATFORM_LOG_LEVEL: 'error',
  PLATFORM_OUTBOUND_ALLOW: '127.0.0.1',
  ...(until === 'answer' && { PLATFORM_MAX_CONCURRENT_RUNS: '1' }),
})

async function send(method: string, path: string, body?: object): Promise<{ status: number; body: { id?: string } }> {
  const text = body && JSON.stringify(body)
  const headers = {
    authorization: `Bearer ${key}`,
    ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  }
  const sent = request(`${runtime.origin}${path}`, { method, headers })
  sent.end(text)
  const [response] = await once(sent, 'response')
  const pieces: Buffer[] = []
  for await (const piece of response) pieces.push(piece)
  return { status: response.statusCode, body: JSON.parse(Buffer.concat(pieces).toString()) }
}

await send('POST', '/v1/agents', { name: 'worker' })

if (until === 'answer') {
  await send('POST', '/v1/settings/llm-providers', {
    provider: 'openai',
    apiKey: 'k',
    baseUrl: `http://127.0.0.1:${port}/v1`,
  })
  await send('POST', '/v1/agents', { name: 'holder', manifest: { model: 'openai/gpt-5' } })
  const asked = once(silent, 'connection')
  await send('POST', '/v1/runs', { agentName: 'holder', input: { prompt: 'hi' } })
  await asked
}

/** By the service's own library: a second one in this process, when it closes the file, takes the locks of the first from it. */
const store = await openDb(join(folder, 'waybill.db'), { readOnly: true })

async function call(): Promise<void> {
  const made = await send('POST', '/v1/runs', { agentName: 'worker', input: { prompt: 'hi' } })
  if (made.status !== 201) throw new Error(`the run was answered ${made.status}`)
  if (until !== 'receipt') return
  // Seen in the store first: a receipt that is asked for too early is a refusal, which enters more.
  const written = { sql: 'select 1 from receipts where run_id = ?', args: [made.body.id ?? ''] }
  while ((await store.execute(written)).rows.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  const { status } = await send('GET', `/v1/runs/${made.body.id}/receipt`)
  if (status !== 200) throw new Error(`the receipt was answered ${status}`)
}

const files = await filesEntered(call)
silent.closeAllConnections()
silent.close()
store.close()
await runtime.close()
await rm(folder, { recursive: true, force: true })
process.stdout.write(JSON.stringify(files))
