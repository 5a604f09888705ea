import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HostRule } from '../../shared/wire/runtime/host-rule.ts'
import { manifest } from '../../shared/wire/runtime/manifest.ts'
import { egressProblem } from '../execution/tools/egress.ts'
import { refusalOf } from './binding.ts'

const of = (given: object) => ({ tool: 'sandbox', agent: manifest.parse(given) }) as const
const at = (url: string) => ({ tool: 'mcp', server: 'far', url }) as const
const one: HostRule = { host: 'api.example.com', ports: [443] }
const below: HostRule = { host: '*.example.com', ports: [443, 8443] }

describe('the address of an MCP server', () => {
  it.each([
    ['https://api.example.com/mcp', [one]],
    ['https://API.example.com:443/mcp?x=1', [one]],
    ['https://a.b.example.com:8443/', [below]],
    ['http://[::1]:9000/', [{ host: '[::1]', ports: [9000] }]],
  ])('%s is among them', (url, hosts) => {
    expect(refusalOf('token', { hosts }, at(url))).toBeUndefined()
  })

  it.each([
    ['another host', 'https://evil.example/'],
    ['a host whose name goes on', 'https://api.example.com.evil.example/'],
    ['a host whose name begins otherwise', 'https://xapi.example.com/'],
    ['a name below it', 'https://a.api.example.com/'],
    ['a name with a dot at its end', 'https://api.example.com./'],
    ['another port', 'https://api.example.com:8443/'],
    ['no encryption', 'http://api.example.com/'],
    ['a user who looks like it', 'https://api.example.com@evil.example/'],
    ['a path that looks like it', 'https://evil.example/@api.example.com'],
  ])('is refused with %s', (_what, url) => {
    expect(refusalOf('token', { hosts: [one] }, at(url))).toContain('the hosts of secret/token do not name')
  })

  it('is not that of the name above a wildcard', () => {
    expect(refusalOf('token', { hosts: [below] }, at('https://example.com/'))).toContain('example.com')
  })
})

describe('a sandbox', () => {
  it.each([
    ['no way out', {}],
    ['the same rule', { egress: [one] }],
    ['a part of the names and ports', { egress: [{ host: '*.eu.example.com', ports: [8443] }] }],
    ['an MCP server among them', { mcpServers: [{ name: 'a', url: 'https://api.example.com/', allow: ['*'] }] }],
    ['an MCP server beside it', { isolation: 'runc', mcpServers: [{ name: 'a', command: 'server', allow: ['*'] }] }],
  ])('may hold it with %s', (_what, given) => {
    expect(refusalOf('token', { hosts: [below, one] }, of(given))).toBeUndefined()
  })

  it.each([
    ['the wildcard above a name', { egress: [{ host: '*.com' }] }],
    ['all names below one of them', { egress: [{ host: '*.api.example.com' }] }],
    ['an MCP server elsewhere', { mcpServers: [{ name: 'a', url: 'https://evil.example/', allow: ['*'] }] }],
    ['connectors', { connectors: ['slack'] }],
    ['other agents', { subAgents: [{ name: 'courier' }] }],
    ['a machine that outlives the run', { session: { dedicatedMicrovm: true } }],
  ])('may not with %s', (_what, given) => {
    expect(refusalOf('token', { hosts: [one] }, of(given))).toContain('secret/token')
  })

  it('that may hold it reaches no address at which an MCP server may not have it', () => {
    const host = fc.constantFrom('a.b', '*.b', '*.a.b', 'b', 'c.a.b', '*.c.a.b')
    const rule = fc.record({ host, ports: fc.uniqueArray(fc.constantFrom(1, 2, 3), { minLength: 1 }) })
    const rules = fc.array(rule, { minLength: 1, maxLength: 4 })
    const url = fc
      .tuple(fc.constantFrom('b', 'a.b', 'x.b', 'c.a.b', 'd.c.a.b', 'evil'), fc.constantFrom(1, 2, 3, 4))
      .map(([name, port]) => `http://${name}:${port}/`)
    fc.assert(
      fc.property(rules, rules, url, (hosts, egress, address) => {
        fc.pre(refusalOf('token', { hosts }, of({ egress })) === undefined)
        if (egressProblem(egress, new URL(address), 'GET') !== undefined) return
        expect(refusalOf('token', { hosts }, at(address))).toBeUndefined()
      }),
    )
  })
})

it('names what a secret is for where it is used for something else', () => {
  expect(refusalOf('token', { tools: ['mcp'] }, of({}))).toBe(
    'secret/token is for mcp alone, and the manifest puts it into the environment of a sandbox: take it out there, or add sandbox to the tools of the secret',
  )
  expect(refusalOf('token', { tools: ['mcp', 'sandbox'] }, of({}))).toBeUndefined()
  expect(refusalOf('token', {}, at('https://anywhere.example/'))).toBeUndefined()
})
