import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'
import type {
  Agent,
  AgentCreated,
  AgentItem,
  AgentVersion,
  AgentVersionWithManifest,
} from '../../shared/wire/runtime/agent.ts'
import { agent, agentCreated, agentItem, agentVersionWithManifest } from '../../shared/wire/runtime/agent.ts'
import type { IsolationItem } from '../../shared/wire/runtime/isolation.ts'
import { manifest as manifestSchema } from '../../shared/wire/runtime/manifest.ts'
import { type Fixture, fixture } from '../auth/testing/fixture.ts'
import { noSandboxes, type Offered } from '../execution/sandbox/sandboxes.ts'
import { isolationItems } from './isolation.ts'

let here: Fixture
beforeEach(async () => {
  here = await fixture()
})
afterEach(() => here.close())

const save = async (body: object, headers: Record<string, string> = {}) => {
  const { status, body: answer } = await here.call<AgentCreated>('POST', '/v1/agents', { body, headers })
  expect([status, answer]).toEqual([201, expect.anything()])
  return agentCreated.parse(answer)
}
const read = async (name: string) => (await here.call<Agent>('GET', `/v1/agents/${name}`)).body
const versionsOf = async (name: string) => (await here.call<AgentVersion[]>('GET', `/v1/agents/${name}/versions`)).body
const publish = async (name: string, body: object) =>
  (await here.call<AgentVersionWithManifest>('POST', `/v1/agents/${name}/versions`, { body })).body

it('names the nodes that can honour an isolation', () => {
  const nodes = [{ id: 'n', backends: ['wasm', 'runc'] as const }]
  const items = new Map(isolationItems(nodes).map(({ value, availableOn }) => [value, availableOn]))
  expect([items.get('wasm'), items.get('runc'), items.get('shared')]).toEqual([['n'], ['n'], ['n']])
})

describe('creating an agent', () => {
  it('gives it a first version with every default written out', async () => {
    const created = await save({ name: 'clerk', labels: { team: 'a' }, description: 'Files things.' })
    expect(created).toMatchObject({ name: 'clerk', version: 1, warnings: [], labels: { team: 'a' }, status: 'active' })
    const found = agent.parse(await read('clerk'))
    expect(found).toMatchObject({ description: 'Files things.', manifest: manifestSchema.parse({}) })
    const [version] = await versionsOf('clerk')
    expect(version).toMatchObject({ number: 1, current: true, createdBy: 'bootstrap', id: created.currentVersionId })
    expect(version!.manifestHash).toBe(sha256Hex(canonicalize(found.manifest)))
  })

  it('warns of an MCP server that its runs may not call, when it is made and when it is published again', async () => {
    await here.close()
    const egress = nodeEgress({ rule: outboundRule() })
    here = await fixture({ egress })
    const server = (url: string) => ({ name: 'files', url, allow: ['*'] })
    const inner = { mcpServers: [server('http://127.0.0.1:9/mcp')] }
    const warning =
      'MCP server files cannot be called: 127.0.0.1 is a loopback address; an operator can open it with the entry 127.0.0.1:9 in PLATFORM_OUTBOUND_ALLOW'
    expect((await save({ name: 'clerk', manifest: inner })).warnings).toEqual([warning])
    expect(await publish('clerk', { manifest: { ...inner, model: 'demo/echo' } })).toMatchObject({
      warnings: [warning],
    })
    const outer = { mcpServers: [server('https://93.184.216.34/mcp')] }
    expect(await publish('clerk', { manifest: outer })).toMatchObject({ warnings: [] })
    expect((await save({ name: 'away', manifest: inner, labels: { 'waybill.pool': 'eu' } })).warnings).not.toContain(
      warning,
    )
    await egress.close()
  })

  it('again publishes only what differs, and updates what is given', async () => {
    const first = await save({ name: 'clerk', manifest: { tools: ['exec'] }, labels: { a: '1' } })
    const same = await save({
      name: 'clerk',
      manifest: { tools: [{ name: 'exec', timeoutSeconds: 60 }], model: 'auto' },
    })
    expect(same).toEqual(first)
    const relabelled = await save({ name: 'clerk', labels: { b: '2' }, description: '' })
    expect(relabelled).toMatchObject({ version: 1, labels: { b: '2' }, description: '' })
    expect((await read('clerk')).manifest.tools[0]?.name).toBe('exec')
    const second = await save({ name: 'clerk', manifest: { systemPrompt: 'Be brief.' } })
    expect(second).toMatchObject({ id: first.id, version: 2, labels: { b: '2' } })
    expect(second.currentVersionId).not.toBe(first.currentVersionId)
    // Not the current one: publishing it again is a new version, as the history says what was current when.
    expect(await save({ name: 'clerk', manifest: { tools: ['exec'] } })).toMatchObject({ version: 3 })
  })

  it('warns of what the manifest names and the tenant does not have', async () => {
    await save({ name: 'helper' })
    const { warnings } = await save({
      name: 'clerk',
      manifest: {
        connectors: ['slack.list_users', 'slack.post_message', 'github'],
        subAgents: [{ name: 'helper' }, { name: 'ghost' }],
        isolation: 'MicroVM',
      },
    })
    expect(warnings).toEqual([
      'connector slack is not installed',
      'connector github is not installed',
      'sub-agent ghost does not exist',
      'no node offers isolation microvm yet: runs end isolation_unavailable unless one does when they start',
    ])
  })

  it('does not warn of wasm, which the embedded node has and tries when it is first asked for', async () => {
    await here.close()
    let tried: Offered[] = []
    const offered = async () => (tried = [{ backend: 'wasm', programs: new Set<string>() }])
    here = await fixture({ sandboxes: { ...noSandboxes, offered, known: () => tried } })
    expect((await save({ name: 'clerk', manifest: { isolation: 'wasm' } })).warnings).toEqual([])
    expect((await save({ name: 'other', manifest: { isolation: 'runc' } })).warnings).toHaveLength(1)
  })

  it.each([
    [{ name: 'a', manifest: { model: 'nobody/x' } }, 'manifest.model'],
    [{ name: 'a', manifest: { isolation: 'docker' } }, 'manifest.isolation'],
    [{ name: 'a', manifest: { isolation: 'runc', tools: ['browse'] } }, 'manifest.tools.0.name'],
    [{ name: 'a b' }, 'name'],
    [{ name: 'a', labels: { k: 'nul \u0000' } }, 'labels.k'],
    [{ name: 'a', colour: 'red' }, 'colour'],
    [{ manifest: {} }, 'name'],
  ])('refuses %j and names the field', async (body, path) => {
    const { status, body: answer } = await here.call('POST', '/v1/agents', { body })
    expect([status, answer.code, answer.details?.[0]?.path]).toEqual([400, 'validation_failed', path])
  })

  it('refuses text that has no UTF-8 form, and keeps every other text as it came', async () => {
    const refused = await here.call('POST', '/v1/agents', {
      body: '{"name":"a","manifest":{"systemPrompt":"\\ud800"}}',
    })
    expect([refused.status, refused.body.error]).toEqual([400, expect.stringMatching(/systemPrompt/)])
    const odd = { description: 'nul \u0000 half', labels: { 'k"': 'é\u0001' } }
    await save({ name: 'b', ...odd, manifest: { systemPrompt: 'nul \u0000 end' } })
    expect(await read('b')).toMatchObject({ ...odd, manifest: { systemPrompt: 'nul \u0000 end' } })
    expect(await save({ name: 'c', description: '\ud800' })).toMatchObject({ name: 'c' })
  })

  it('at once by many leaves one agent with versions numbered without a gap', async () => {
    const texts = Array.from({ length: 12 }, (_, i) => `prompt ${i % 4}`)
    const all = await Promise.all(
      texts.map(systemPrompt =>
        here.call<AgentCreated>('POST', '/v1/agents', { body: { name: 'busy', systemPrompt } }),
      ),
    )
    expect(all.map(({ status }) => status)).toEqual(texts.map(() => 201))
    expect(new Set(all.map(({ body }) => body.id)).size).toBe(1)
    const numbers = (await versionsOf('busy')).map(({ number }) => number).toSorted((a, b) => a - b)
    expect(numbers).toEqual(numbers.map((_, i) => i + 1))
    expect((await versionsOf('busy')).filter(({ current }) => current)).toHaveLength(1)
  })

  it('with an idempotency key happens once, also when the process died before it answered', async () => {
    const headers = { 'idempotency-key': 'k' }
    const first = await save({ name: 'clerk', manifest: { tools: ['exec'] } }, headers)
    await save({ name: 'clerk', manifest: { tools: ['python'] } })
    await here.db.execute('update idempotency set status = null, answer = null')
    const again = await save({ name: 'clerk', manifest: { tools: ['exec'] } }, headers)
    expect(again).toMatchObject({ id: first.id, version: 1 })
    expect((await read('clerk')).manifest.tools[0]?.name).toBe('python')
  })
})

describe('versions', () => {
  it('are published, found, promoted and rolled back', async () => {
    const { currentVersionId: one } = await save({ name: 'clerk' })
    const two = agentVersionWithManifest.parse(
      await publish('clerk', { manifest: { systemPrompt: 'two' }, promote: false, note: 'a try' }),
    )
    expect(two).toMatchObject({ number: 2, current: false, note: 'a try', manifest: { systemPrompt: 'two' } })
    expect((await read('clerk')).currentVersionId).toBe(one)
    const promote = (id: string) =>
      here.call<AgentItem>('POST', `/v1/agents/clerk/versions/${id}/promote`, { body: {} })
    expect(agentItem.parse((await promote(two.id)).body).currentVersionId).toBe(two.id)
    expect((await read('clerk')).manifest.systemPrompt).toBe('two')
    expect((await promote(one)).body.currentVersionId).toBe(one)
    const found = await here.call<AgentVersionWithManifest>('GET', `/v1/agents/clerk/versions/${two.id}`)
    expect(found.body).toEqual({ ...two, current: false })
    expect((await versionsOf('clerk')).map(({ current, id }) => [id === one, current])).toContainEqual([true, true])
  })

  it('with an equal manifest are the same version, and become current unless told otherwise', async () => {
    const { currentVersionId: one } = await save({ name: 'clerk', manifest: { systemPrompt: 'one' } })
    await publish('clerk', { manifest: { systemPrompt: 'two' } })
    const kept = await publish('clerk', { manifest: { systemPrompt: 'one', model: 'auto' }, promote: false })
    expect(kept).toMatchObject({ id: one, number: 1, current: false })
    expect(await publish('clerk', { manifest: { systemPrompt: 'one' } })).toMatchObject({ id: one, current: true })
    expect(await versionsOf('clerk')).toHaveLength(2)
  })

  it('belong to their agent', async () => {
    const { currentVersionId } = await save({ name: 'a' })
    await save({ name: 'b' })
    for (const path of [`b/versions/${currentVersionId}`, 'b/versions/nothing', `ghost/versions/${currentVersionId}`]) {
      expect((await here.call('GET', `/v1/agents/${path}`)).status, path).toBe(404)
      expect((await here.call('POST', `/v1/agents/${path}/promote`, { body: {} })).status, path).toBe(404)
    }
    expect((await here.call('POST', '/v1/agents/ghost/versions', { body: { manifest: {} } })).body.error).toBe(
      'agent not found: ghost',
    )
  })

  it('never change, whatever follows', async () => {
    const action = fc.oneof(
      fc.record({ systemPrompt: fc.constantFrom('a', 'b', 'c') }).map(manifest => ({ manifest })),
      fc.record({ promote: fc.nat(5) }),
    )
    let round = 0
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 8 }), async actions => {
        const name = `agent-${++round}`
        await save({ name })
        const hashes = new Map<string, string>()
        for (const one of actions) {
          const known = await versionsOf(name)
          for (const { id, manifestHash } of known) {
            expect(hashes.get(id) ?? manifestHash).toBe(manifestHash)
            hashes.set(id, manifestHash)
          }
          if ('manifest' in one) await publish(name, one)
          else {
            const { id } = known[one.promote % known.length]!
            await here.call('POST', `/v1/agents/${name}/versions/${id}/promote`, {})
          }
          expect((await versionsOf(name)).filter(({ current }) => current)).toHaveLength(1)
        }
      }),
      { numRuns: 15 },
    )
  })
})

describe('an agent', () => {
  it('changes labels and description, each as a whole, and nothing else', async () => {
    await save({ name: 'clerk', labels: { a: '1', b: '2' }, description: 'x' })
    const patch = (body: object) => here.call<AgentItem>('PATCH', '/v1/agents/clerk', { body })
    expect((await patch({ labels: { c: '3' } })).body).toMatchObject({ labels: { c: '3' }, description: 'x' })
    expect((await patch({ description: 'y' })).body).toMatchObject({ labels: { c: '3' }, description: 'y' })
    expect((await patch({ name: 'other' })).status).toBe(400)
    expect((await here.call('PATCH', '/v1/agents/ghost', { body: {} })).status).toBe(404)
  })

  it('that is deleted is gone, and its name may be used anew', async () => {
    const first = await save({ name: 'clerk' })
    expect((await here.call('DELETE', '/v1/agents/clerk')).status).toBe(204)
    expect((await here.call('DELETE', '/v1/agents/clerk')).status).toBe(404)
    expect((await here.call('GET', '/v1/agents/clerk')).body.error).toBe('agent not found: clerk')
    expect((await here.call<AgentItem[]>('GET', '/v1/agents')).body).toEqual([])
    const second = await save({ name: 'clerk' })
    expect(second.id).not.toBe(first.id)
    expect(second.version).toBe(1)
  })

  it('is listed by label, newest first, in pages', async () => {
    for (const [i, team] of ['x', 'y', 'x', 'x'].entries()) {
      await save({ name: `a${i}`, labels: { team, 'with:colon': 'x' } })
      here.clock.advance(1)
    }
    const list = async (query: string) => {
      const { body, headers } = await here.call<AgentItem[]>('GET', `/v1/agents${query}`)
      return [body.map(({ name }) => name), headers.get('link') !== null]
    }
    expect(await list('')).toEqual([['a3', 'a2', 'a1', 'a0'], false])
    expect(await list('?label=team:x&limit=2')).toEqual([['a3', 'a2'], true])
    expect(await list('?label=team:x&limit=3')).toEqual([['a3', 'a2', 'a0'], false])
    expect(await list('?label=team:z')).toEqual([[], false])
    expect((await here.call('GET', '/v1/agents?label=team')).status).toBe(400)
  })
})

it('says which isolation is to be had where', async () => {
  const { body } = await here.call<IsolationItem[]>('GET', '/v1/isolation')
  expect(body.map(({ value }) => value)).toContain('firecracker')
  for (const { value, availableOn } of body) expect(availableOn, value).toHaveLength(value === 'shared' ? 1 : 0)
  const again = await here.call<IsolationItem[]>('GET', '/v1/isolation')
  expect(again.body).toEqual(body)
})
