import type { RuntimeOptions } from '../../runtime/runtime.ts'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import { readAllowEntry } from '../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { createLog } from '../../shared/log/log.ts'
import type { Run, Step } from '../../shared/wire/runtime/run.ts'
import { type ScriptedUpstream, scriptedUpstream } from '../upstream/scripted.ts'
import { type Api, api } from './api.ts'

/** Stands for a provider's key: whatever else is written anywhere, this never is. */
export const CANARY = 'sk-canary-5f2c9b7d41e8a603-TAIL'

export interface ProviderFixture extends Api {
  remote: ScriptedUpstream
  /** Every line that was logged. */
  lines: string[]
  /** Stores a provider that points at the scripted upstream. */
  configure(provider: string, more?: object): Promise<void>
  /** An agent named `worker`, and one run of it to its end. */
  ran(model: string, manifest?: object, prompt?: string): Promise<{ run: Run; steps: Step[] }>
}

/** A runtime whose providers are a server of this test. */
export async function providerFixture(
  options: Partial<RuntimeOptions> & { url?: string } = {},
): Promise<ProviderFixture> {
  const remote = await scriptedUpstream()
  const lines: string[] = []
  const egress = nodeEgress({ rule: outboundRule([readAllowEntry('127.0.0.1')!]) })
  const log = createLog({ filter: { all: 'trace', byTarget: new Map() }, write: line => lines.push(line) })
  const made = await api({ egress, log, masterKey: new Uint8Array(32).fill(9), ...options })
  const { json } = made

  return {
    ...made,
    remote,
    lines,
    async configure(provider, more = {}) {
      await json(200, 'POST', '/v1/settings/llm-providers', {
        provider,
        apiKey: CANARY,
        baseUrl: remote.origin,
        ...more,
      })
    },
    async ran(model, manifest = {}, prompt = 'Say hello.') {
      const retry = { maxAttempts: 2, unbilledAttempts: 2, backoffMs: 0, maxBackoffMs: 50, jitter: false }
      await json(201, 'POST', '/v1/agents', { name: 'worker', manifest: { model, retry, ...manifest } })
      const { id } = await json<Run>(201, 'POST', '/v1/runs', { agentName: 'worker', input: { prompt } })
      await (await made.events(`/v1/runs/${id}/events`)).all()
      return {
        run: await json<Run>(200, 'GET', `/v1/runs/${id}`),
        steps: await json<Step[]>(200, 'GET', `/v1/runs/${id}/steps`),
      }
    },
    async close() {
      await made.close()
      await egress.close()
      await remote.close()
    },
  }
}

/** The run once its stream of events has ended. */
export async function endedRun({ events, json }: ProviderFixture, id: string): Promise<Run> {
  await (await events(`/v1/runs/${id}/events`)).all()
  return json<Run>(200, 'GET', `/v1/runs/${id}`)
}
