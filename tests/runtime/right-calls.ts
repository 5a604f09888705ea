import { create } from '@bufbuild/protobuf'
import { EnrolRequestSchema } from '../../shared/tunnel/gateway.gen.ts'
import { newBoxKeys } from '../../shared/tunnel/sealed-payload.ts'
import type { Endpoint } from '../../shared/wire/endpoint.ts'
import type { Approval } from '../../shared/wire/runtime/approval.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import type { Run } from '../../shared/wire/runtime/run.ts'
import type { Delivery } from '../../shared/wire/runtime/webhook.ts'
import { answer } from '../upstream/scripted.ts'
import { grantingServer } from './granting-server.ts'
import type { ProviderFixture } from './provider-fixture.ts'

/** A call that is right in every way but who makes it. */
export interface RightCall {
  path: string
  body?: unknown
  /** What a good key of another tenant gets, where the path alone does not say it. */
  foreign?: 'its own' | 404
}

/** What every operation is called with: each call makes objects of its own, so that none stands in the way of another. */
export async function rightCalls(fixture: ProviderFixture) {
  const { json, events } = fixture
  let made = 0
  const fresh = (kind: string) => `mine-${kind}-${++made}`

  async function agent(): Promise<string> {
    const name = fresh('agent')
    await json(201, 'POST', '/v1/agents', { name, manifest: { tools: ['wait_signal', 'ask_human'] } })
    return name
  }
  async function run(prompt = 'hello'): Promise<string> {
    return (await json<Run>(201, 'POST', '/v1/runs', { agentName: await agent(), input: { prompt } })).id
  }
  async function ended(): Promise<string> {
    const id = await run()
    await (await events(`/v1/runs/${id}/events`)).all()
    return id
  }
  const waiting = () => run('/call wait_signal {"name":"go"}')
  async function asked(): Promise<{ id: string; runId: string }> {
    const runId = await run('/call ask_human {"prompt":"how many?"}')
    for (;;) {
      const [approval] = await json<Approval[]>(200, 'GET', `/v1/runs/${runId}/approvals`)
      const { status } = await json<Run>(200, 'GET', `/v1/runs/${runId}`)
      if (approval && status === 'waiting') return { id: approval.id, runId }
      if (status === 'failed') throw new Error(`run ${runId} asked nobody`)
      await new Promise(resolve => setTimeout(resolve, 2))
    }
  }
  async function session(): Promise<string> {
    return (await json<{ id: string }>(201, 'POST', '/v1/sessions', { agentName: await agent() })).id
  }
  async function schedule(): Promise<string> {
    const body = { agentName: await agent(), cronExpr: '0 0 1 1 *' }
    return (await json<{ id: string }>(201, 'POST', '/v1/schedules', body)).id
  }
  async function webhook(): Promise<string> {
    const url = `${fixture.remote.origin}/hook`
    return (await json<{ id: string }>(201, 'POST', '/v1/webhooks', { url, events: ['run.succeeded'] })).id
  }
  async function budget(): Promise<string> {
    const name = await agent()
    await json(200, 'PUT', `/v1/agents/${name}/budget`, { maxRunsPerDay: 10 })
    return name
  }
  /** One that a key with `keys:write` may revoke: it holds no more. */
  async function key(): Promise<string> {
    const asked = { name: fresh('key'), scopes: ['keys:write'] }
    return (await json<{ key: { id: string } }>(201, 'POST', '/v1/api-keys', asked)).key.id
  }
  async function tenant(): Promise<string> {
    return (await json<{ id: string }>(201, 'POST', '/v1/tenants', { name: fresh('tenant') })).id
  }
  async function secret(): Promise<string> {
    const name = fresh('secret')
    await json(200, 'PUT', `/v1/secrets/${name}`, { value: 'mine-value' })
    return name
  }
  async function version(): Promise<string> {
    const name = await agent()
    const [one] = await json<{ id: string }[]>(200, 'GET', `/v1/agents/${name}/versions`)
    return `/v1/agents/${name}/versions/${one?.id}`
  }
  /** An MCP server that wants a token, and gives it to every client. */
  async function granting() {
    const server = await grantingServer()
    const { close } = fixture
    fixture.close = async () => {
      await close()
      await server.close()
    }
    return server
  }
  async function grant(): Promise<string> {
    const { url } = await granting()
    const { state } = await json<{ state: string }>(200, 'POST', '/v1/mcp-servers/oauth/start', { url })
    await fixture.call('GET', `/auth/connectors/callback?code=c&state=${state}`)
    const all = await json<{ id: string; url: string }[]>(200, 'GET', '/v1/mcp-servers/grants')
    return all.find(one => one.url === url)!.id
  }
  /** A vendor whose account is empty. */
  async function connector(): Promise<string> {
    fixture.remote.always(answer(200, '{"object":"list","data":[],"has_more":false}'))
    const config = { secretKey: 'sk-mine', baseUrl: fixture.remote.origin }
    await json(201, 'POST', '/v1/connectors/install', { connectorId: 'stripe', config })
    return '/v1/connectors/stripe'
  }
  async function node(): Promise<string> {
    return `/v1/nodes/${(await json<{ id: string }>(201, 'POST', '/v1/nodes', { name: fresh('node') })).id}`
  }
  /** A pool that has a node, and with it a key that something can be sealed to. */
  async function pool(): Promise<string> {
    const name = fresh('pool')
    const { enrolToken } = await json<{ enrolToken: string }>(201, 'POST', '/v1/nodes', { name, pool: name })
    const key = () => crypto.getRandomValues(new Uint8Array(32))
    const { publicKey: boxKey } = await newBoxKeys()
    await fixture.runtime.nodes.gateway.enrol(create(EnrolRequestSchema, { token: enrolToken, signKey: key(), boxKey }))
    return `/v1/pools/${name}/credentials`
  }
  const ofPool = { secret: { name: 'mine', value: 'x' } }
  async function poolSecret(): Promise<string> {
    const path = await pool()
    await json(200, 'PUT', path, ofPool)
    return `${path}?ref=secret/mine`
  }
  async function person(): Promise<string> {
    const body = { email: `${fresh('person')}@example.com`, name: 'Mine' }
    return `/v1/users/${(await json<{ user: { id: string } }>(201, 'POST', '/v1/users', body)).user.id}`
  }
  const receipt = async () => json<Receipt>(200, 'GET', `/v1/runs/${await ended()}/receipt`)
  const at = (path: string, body?: unknown): RightCall => ({ path, ...(body !== undefined && { body }) })

  const calls: Record<string, () => Promise<RightCall>> = {
    createApiKey: async () => at('/v1/api-keys', { name: fresh('key'), scopes: ['keys:read'] }),
    revokeApiKey: async () => at(`/v1/api-keys/${await key()}`),
    createTenant: async () => at('/v1/tenants', { name: fresh('tenant') }),
    deleteTenant: async () => at(`/v1/tenants/${await tenant()}`),
    createTenantApiKey: async () => at(`/v1/tenants/${await tenant()}/api-keys`, { name: fresh('key') }),
    inviteUser: async () => at('/v1/users', { email: `${fresh('person')}@example.com`, name: 'Mine' }),
    getUser: async () => at(await person()),
    updateUser: async () => at(await person(), { disabled: true }),
    linkUser: async () => at(`${await person()}/link`, {}),
    deleteUser: async () => at(await person()),
    createAgent: async () => at('/v1/agents', { name: fresh('agent') }),
    getAgent: async () => at(`/v1/agents/${await agent()}`),
    updateAgent: async () => at(`/v1/agents/${await agent()}`, { description: 'new' }),
    deleteAgent: async () => at(`/v1/agents/${await agent()}`),
    listAgentVersions: async () => at(`/v1/agents/${await agent()}/versions`),
    publishAgentVersion: async () => at(`/v1/agents/${await agent()}/versions`, { manifest: { systemPrompt: 'new' } }),
    getAgentVersion: async () => at(await version()),
    promoteAgentVersion: async () => at(`${await version()}/promote`, {}),
    createRun: async () => ({ ...at('/v1/runs', { agentName: await agent() }), foreign: 404 }),
    getRun: async () => at(`/v1/runs/${await ended()}`),
    deleteRun: async () => at(`/v1/runs/${await ended()}`),
    cancelRun: async () => at(`/v1/runs/${await waiting()}/cancel`, {}),
    forkRun: async () => at(`/v1/runs/${await ended()}/fork`, { fromStepId: 'model-1' }),
    async retryRun() {
      const id = await waiting()
      await json(200, 'POST', `/v1/runs/${id}/cancel`, {})
      return at(`/v1/runs/${id}/retry`, {})
    },
    signalRun: async () => at(`/v1/runs/${await waiting()}/signals/go`, { value: 1 }),
    listRunSteps: async () => at(`/v1/runs/${await ended()}/steps`),
    readStepRequest: async () => at(`/v1/runs/${await ended()}/steps/model-1/request`),
    exportRunJournal: async () => at(`/v1/runs/${await ended()}/journal`),
    async readRunBlob() {
      const id = await run('x'.repeat(270_000))
      const entries = await (await events(`/v1/runs/${id}/events`)).all()
      const digest = /"\$blob":\{[^}]*"sha256":"([0-9a-f]{64})"/.exec(JSON.stringify(entries))?.[1]
      return at(`/v1/runs/${id}/blobs/${digest}`)
    },
    streamRunEvents: async () => at(`/v1/runs/${await ended()}/events`),
    forecastRun: async () => ({ ...at('/v1/runs/forecast', { agentName: await agent(), input: {} }), foreign: 404 }),
    getApproval: async () => at(`/v1/approvals/${(await asked()).id}`),
    listRunApprovals: async () => at(`/v1/runs/${await ended()}/approvals`),
    approve: async () => at(`/v1/approvals/${(await asked()).id}/approve`, { output: 1 }),
    reject: async () => at(`/v1/approvals/${(await asked()).id}/reject`, { comment: 'no' }),
    async approveOfRun() {
      const { id, runId } = await asked()
      return at(`/v1/runs/${runId}/approvals/${id}/approve`, { output: 1 })
    },
    async rejectOfRun() {
      const { id, runId } = await asked()
      return at(`/v1/runs/${runId}/approvals/${id}/reject`, { comment: 'no' })
    },
    saveProvider: async () => at('/v1/settings/llm-providers', { provider: 'openai', apiKey: 'sk-mine' }),
    async testProvider() {
      await fixture.configure('anthropic')
      return { ...at('/v1/settings/llm-providers/anthropic/test', {}), foreign: 404 }
    },
    async deleteProvider() {
      await fixture.configure('anthropic')
      return at('/v1/settings/llm-providers/anthropic')
    },
    saveModelSettings: async () => at('/v1/settings/models', { aliases: { auto: ['demo/echo'] }, prices: {} }),
    saveSecret: async () => ({ ...at(`/v1/secrets/${await secret()}`, { value: 'other' }), foreign: 'its own' }),
    deleteSecret: async () => at(`/v1/secrets/${await secret()}`),
    getReceipt: async () => at(`/v1/runs/${await ended()}/receipt`),
    issueReceipt: async () => at(`/v1/runs/${await ended()}/receipt`),
    // A foreign receipt is checked like any other, and nothing is said of what is stored.
    verifyReceipt: async () => ({ ...at('/v1/runs/receipts/verify', await receipt()), foreign: 'its own' }),
    installConnector: async () => ({
      ...at('/v1/connectors/install', {
        connectorId: 'vercel',
        config: { apiToken: 'mine-token', baseUrl: fixture.remote.origin },
      }),
      foreign: 'its own',
    }),
    mcp: async () => ({ ...at('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }), foreign: 'its own' }),
    startConnectorOAuth: async () => ({
      ...at('/v1/connectors/oauth/start', { connectorId: 'github' }),
      foreign: 'its own',
    }),
    startMcpOAuth: async () => ({
      ...at('/v1/mcp-servers/oauth/start', { url: (await granting()).url }),
      foreign: 'its own',
    }),
    removeMcpGrant: async () => at(`/v1/mcp-servers/grants/${await grant()}`),
    createNode: async () => ({ ...at('/v1/nodes', { name: fresh('node') }), foreign: 'its own' }),
    listPoolCredentials: async () => ({ ...at(await pool()), foreign: 'its own' }),
    savePoolCredential: async () => ({ ...at(await pool(), ofPool), foreign: 404 }),
    deletePoolCredential: async () => ({ ...at(await poolSecret()), foreign: 404 }),
    getNode: async () => at(await node()),
    drainNode: async () => at(`${await node()}/drain`, {}),
    undrainNode: async () => at(`${await node()}/undrain`, {}),
    deleteNode: async () => at(await node()),
    getConnector: async () => at(await connector()),
    testConnector: async () => at(`${await connector()}/test`, {}),
    executeConnector: async () => at(`${await connector()}/execute?action=list_charges`, {}),
    executeConnectorRead: async () => at(`${await connector()}/execute?action=list_charges`),
    uninstallConnector: async () => at(await connector()),
    saveBudget: async () => at(`/v1/agents/${await agent()}/budget`, { maxRunsPerDay: 1 }),
    getBudget: async () => at(`/v1/agents/${await budget()}/budget`),
    deleteBudget: async () => at(`/v1/agents/${await budget()}/budget`),
    createSchedule: async () => ({
      ...at('/v1/schedules', { agentName: await agent(), cronExpr: '0 0 1 1 *' }),
      foreign: 404,
    }),
    previewSchedule: async () => at('/v1/schedules/preview?cronExpr=0%200%201%201%20*'),
    getSchedule: async () => at(`/v1/schedules/${await schedule()}`),
    updateSchedule: async () => at(`/v1/schedules/${await schedule()}`, { overlap: 'skip' }),
    deleteSchedule: async () => at(`/v1/schedules/${await schedule()}`),
    pauseSchedule: async () => at(`/v1/schedules/${await schedule()}/pause`, {}),
    resumeSchedule: async () => at(`/v1/schedules/${await schedule()}/resume`, {}),
    runSchedule: async () => at(`/v1/schedules/${await schedule()}/run`, {}),
    listScheduleFires: async () => at(`/v1/schedules/${await schedule()}/fires`),
    createWebhook: async () => at('/v1/webhooks', { url: `${fixture.remote.origin}/hook` }),
    updateWebhook: async () => at(`/v1/webhooks/${await webhook()}`, { enabled: false }),
    deleteWebhook: async () => at(`/v1/webhooks/${await webhook()}`),
    testWebhook: async () => at(`/v1/webhooks/${await webhook()}/test`, {}),
    listWebhookDeliveries: async () => at(`/v1/webhooks/${await webhook()}/deliveries`),
    async redeliverWebhook() {
      const id = await webhook()
      await ended()
      for (;;) {
        const [sent] = await json<Delivery[]>(200, 'GET', `/v1/webhooks/${id}/deliveries`)
        if (sent) return at(`/v1/webhooks/${id}/deliveries/${sent.id}/redeliver`, {})
        await new Promise(resolve => setTimeout(resolve, 2))
      }
    },
    createSession: async () => ({ ...at('/v1/sessions', { agentName: await agent() }), foreign: 404 }),
    getSession: async () => at(`/v1/sessions/${await session()}`),
    sendMessage: async () => at(`/v1/sessions/${await session()}/messages`, { content: 'hello' }),
    stopSession: async () => at(`/v1/sessions/${await session()}/stop`, {}),
    deleteSession: async () => at(`/v1/sessions/${await session()}`),
    async streamSessionEvents() {
      const id = await session()
      await json(200, 'POST', `/v1/sessions/${id}/stop`, {})
      return at(`/v1/sessions/${id}/events`)
    },
  }

  /** A list needs nothing but its path; of anything else this has to be told what a right call is. */
  return (endpoint: Endpoint): Promise<RightCall> => {
    const call = calls[endpoint.id]
    if (call) return call()
    if (endpoint.method === 'GET' && !endpoint.path.includes('{')) return Promise.resolve(at(endpoint.path))
    throw new Error(`say in right-calls.ts what a right call of ${endpoint.id} is`)
  }
}
