import { join } from 'node:path'
import { openKeyChest } from '../../runtime/host/key-chest.ts'
import { makeFolder } from '../../shared/host/make-folder.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import type { Session } from '../../shared/wire/runtime/session.ts'
import { api, KEY } from '../runtime/api.ts'
import { nodeFixture, until } from '../runtime/node-fixture.ts'

/** What a holder has of a run: two texts, and the fingerprint that was kept. */
export interface RunProof {
  receipt: string
  journal: string
  fingerprint: string
}

export const RUN_KINDS = [
  'succeeded',
  'failed',
  'cancelled',
  'approval',
  'parent',
  'child',
  'session',
  'node',
  'rotated',
] as const
export type RunKind = (typeof RUN_KINDS)[number]

const MASTER_KEY = new Uint8Array(32).fill(7)
const storeOf = (folder: string) => join(folder, 'runtime', 'control.db')

/** A service over the store that the proofs are from: it has their keys, records and journals. */
export const proofService = (folder: string) => api({ url: storeOf(folder), masterKey: MASTER_KEY })

/** The variables of such a service in a process of its own. */
export const proofVars = (folder: string) => ({
  PLATFORM_DATABASE_URL: storeOf(folder),
  PLATFORM_BOOTSTRAP_KEY: KEY,
  PLATFORM_MASTER_KEY: Buffer.from(MASTER_KEY).toString('base64'),
})

/** Proofs of runs of every kind, as a service gives them; its store stays in the folder. */
export async function runtimeProofs(folder: string): Promise<Record<RunKind, RunProof>> {
  const fixture = join(folder, 'runtime')
  await makeFolder(fixture)
  const masterKey = MASTER_KEY
  const url = storeOf(folder)
  const on = await api({
    url,
    masterKey,
    tunnel: { heartbeatMs: 1000, lostMs: 3000, maxStreamMs: 3_600_000, readMs: 2000 },
  })
  const node = await nodeFixture(on, fixture)
  try {
    const agent = (name: string, manifest: object, more = {}) =>
      on.json(201, 'POST', '/v1/agents', { name, manifest: { model: 'demo/echo', ...manifest }, ...more })
    const started = async (agentName: string, prompt: string, more = {}) =>
      (await on.json<Run>(201, 'POST', '/v1/runs', { agentName, input: { prompt, ...more } })).id
    const ended = (id: string) =>
      until(
        async () => isTerminal((await on.json<Run>(200, 'GET', `/v1/runs/${id}?fields=summary`)).status),
        `run ${id} ends`,
      )
    const text = async (path: string) => {
      const answer = await on.call('GET', path)
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
      return answer.text()
    }
    async function proof(id: string): Promise<RunProof> {
      await ended(id)
      const receipt = await text(`/v1/runs/${id}/receipt`)
      const { keyId } = (JSON.parse(receipt) as Receipt).payload
      const { keys } = JSON.parse(await text('/.well-known/platform-receipts'))
      const { keyFingerprint } = keys.find((key: { keyId: string }) => key.keyId === keyId)
      return { receipt, journal: await text(`/v1/runs/${id}/journal`), fingerprint: keyFingerprint }
    }

    await agent('echo', { tools: ['wait', 'ask_human'] })
    await agent('strict', { outputSchema: { type: 'object', required: ['x'] }, outputRepairs: 0 })
    await agent('boss', { subAgents: [{ name: 'echo' }] })
    await agent('far', {}, { labels: { 'waybill.pool': 'default' } })

    const succeeded = await started('echo', '/call wait {"seconds":0}', { note: 'é😀' })
    const numbers = [1e21, 0.1, 1e-7, 0.000035, 1234567890123456800, null]
    const failed = await started('strict', 'no')
    const cancelled = await started('echo', '/call wait {"seconds":3600}')
    await until(async () => {
      const { eventCount } = await on.json<JournalExport>(200, 'GET', `/v1/runs/${cancelled}/journal`)
      return eventCount > 0
    }, 'the run has begun')
    await on.json(200, 'POST', `/v1/runs/${cancelled}/cancel`, {})
    const approval = await started('echo', '/call ask_human {"prompt":"May I?"}')
    const asked = await until(async () => {
      const [one] = await on.json<Approval[]>(200, 'GET', `/v1/runs/${approval}/approvals`)
      return (await on.json<Run>(200, 'GET', `/v1/runs/${approval}`)).status === 'waiting' && one
    }, 'the question is asked')
    await on.json(200, 'POST', `/v1/approvals/${asked.id}/approve`, { output: { note: 'é😀', numbers } })
    const parent = await started('boss', '/call agent__echo {"prompt":"hello"}')
    await ended(parent)
    const [child] = await on.json<Run[]>(200, 'GET', `/v1/runs?parentRunId=${parent}&fields=summary`)
    const session = await on.json<Session>(201, 'POST', '/v1/sessions', { agentName: 'echo' })
    const turn = await on.json<{ turnId: string }>(200, 'POST', `/v1/sessions/${session.id}/messages`, {
      content: 'hello',
    })
    await until(async () => {
      const one = await on.json<{ status: string }>(200, 'GET', `/v1/nodes/${node.identity.nodeId}`)
      return one.status === 'online'
    }, 'the node is online')
    const remote = await started('far', 'over there')
    const before = {
      succeeded: await proof(succeeded),
      failed: await proof(failed),
      cancelled: await proof(cancelled),
      approval: await proof(approval),
      parent: await proof(parent),
      child: await proof(child!.id),
      session: await proof(turn.turnId),
      node: await proof(remote),
    }
    const chest = await openKeyChest(
      {
        PLATFORM_DATABASE_URL: url,
        PLATFORM_MASTER_KEY: Buffer.from(masterKey).toString('base64'),
        PLATFORM_DATA_DIR: fixture,
      },
      { create: false },
    )
    const keyId = await chest.rotateReceiptKey()
    chest.close()
    const rotated = await until(
      async () => {
        const found = await proof(await started('echo', 'with another key'))
        return (JSON.parse(found.receipt) as Receipt).payload.keyId === keyId && found
      },
      'the new key signs',
      30_000,
    )
    return { ...before, rotated }
  } finally {
    await node.close()
    await on.close()
  }
}
