import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { check } from '../issues.ts'
import { agentCreate } from './agent.ts'
import { isolationTable, isolationValues, toolsRefusedBy } from './isolation.ts'
import { manifest } from './manifest.ts'
import { decodedBytes, isWorkspacePath } from './manifest-parts.ts'
import { builtInToolNames, builtInTools, normaliseTool } from './tool.ts'

const read = (given: unknown) => {
  const result = check(manifest, given)
  if (!result.ok) throw new Error(JSON.stringify(result.details))
  return result.value
}
const complaints = (given: unknown) => {
  const result = check(manifest, given)
  return result.ok ? [] : result.details
}

describe('manifest', () => {
  it('writes out the defaults of the contract', () => {
    expect(read({})).toEqual({
      systemPrompt: '',
      model: 'auto',
      isolation: 'shared',
      limits: {
        vcpus: 1,
        memoryMb: 512,
        diskMb: 1024,
        timeoutSeconds: 3600,
        maxSteps: 200,
        maxTurns: 25,
        maxOutputTokens: 4096,
      },
      egress: [],
      tools: [],
      connectors: [],
      mcpServers: [],
      subAgents: [],
      outputRepairs: 2,
      retry: { maxAttempts: 3, backoffMs: 500, maxBackoffMs: 30_000, jitter: true },
      approvals: { tools: [], expiresMinutes: 1440, onExpire: 'fail', onReject: 'fail' },
      anomalies: { loopIterations: 500, steps: 80, retries: 10, costUsd: 5, tokens: 500_000, action: 'report' },
      session: { idleTimeoutSeconds: 1800, historyTurns: 20, dedicatedMicrovm: false },
      files: [],
      secrets: [],
      privacy: { storePrompts: true, redact: [] },
    })
  })

  it('fills an empty confidence table, and leaves an absent one off', () => {
    expect(read({ confidence: {} }).confidence).toEqual({
      threshold: 0.75,
      estimator: 'verbalized',
      samples: 5,
      gates: ['tools', 'connectors', 'mcp'],
      onLow: 'approve',
    })
    expect(read({}).confidence).toBeUndefined()
  })

  it('takes the manifest of the interface specification', () => {
    expect(read({ systemPrompt: 'Be brief.', model: 'auto' })).toMatchObject({
      systemPrompt: 'Be brief.',
      model: 'auto',
    })
  })

  it('reads isolation in any case and stores lower case', () => {
    for (const value of isolationValues) expect(read({ isolation: value.toUpperCase() }).isolation).toBe(value)
    expect(complaints({ isolation: 'docker' })[0]).toMatchObject({ path: 'isolation' })
  })

  it('normalises egress', () => {
    expect(read({ egress: [{ host: 'API.example.com', methods: ['get'] }] }).egress).toEqual([
      { host: 'api.example.com', ports: [443], methods: ['GET'] },
    ])
    expect(complaints({ egress: ['api.example.com'] })).toEqual([
      { path: 'egress.0', message: 'expected { "host": "api.example.com" }' },
    ])
  })

  it.each<[string, unknown, string]>([
    ['an unknown model', { model: 'nobody/x' }, 'model'],
    ['an unknown key', { sytemPrompt: '' }, 'sytemPrompt'],
    ['an unknown nested key', { limits: { cpu: 1 } }, 'limits.cpu'],
    ['too little vcpu', { limits: { vcpus: 0.1 } }, 'limits.vcpus'],
    ['too much memory', { limits: { memoryMb: 65_537 } }, 'limits.memoryMb'],
    ['a broken timeout', { limits: { timeoutSeconds: 1.5 } }, 'limits.timeoutSeconds'],
    ['an unknown tool', { tools: ['rm'] }, 'tools.0'],
    ['a tool listed twice', { tools: ['exec', { name: 'exec' }] }, 'tools.1.name'],
    [
      'idempotent against effect',
      { tools: [{ name: 'exec', effect: 'once', idempotent: true }] },
      'tools.0.idempotent',
    ],
    ['an unknown connector', { connectors: ['fax'] }, 'connectors.0'],
    ['an unknown connector action', { connectors: ['slack.dance'] }, 'connectors.0'],
    ['a wildcard in the middle of a host', { egress: [{ host: 'a.*.com' }] }, 'egress.0.host'],
    ['a port of 0', { egress: [{ host: 'a.com', ports: [0] }] }, 'egress.0.ports.0'],
    ['an MCP server without url or command', { mcpServers: [{ name: 'm', allow: [] }] }, 'mcpServers.0.url'],
    [
      'an MCP server with both',
      { mcpServers: [{ name: 'm', allow: ['*'], url: 'https://m.example', command: 'm' }] },
      'mcpServers.0.command',
    ],
    [
      'an MCP header with the value itself',
      { mcpServers: [{ name: 'm', allow: [], url: 'https://m.example', headers: { a: 'b' } }] },
      'mcpServers.0.headers.a',
    ],
    ['an output schema that is no object', { outputSchema: { type: 'array' } }, 'outputSchema.type'],
    ['eleven attempts', { retry: { maxAttempts: 11 } }, 'retry.maxAttempts'],
    ['a threshold over 1', { confidence: { threshold: 1.1 } }, 'confidence.threshold'],
    ['one sample', { confidence: { samples: 1 } }, 'confidence.samples'],
    ['an expiry of no minutes', { approvals: { expiresMinutes: 0 } }, 'approvals.expiresMinutes'],
    ['a star inside an approval pattern', { approvals: { tools: ['a*b'] } }, 'approvals.tools.0'],
    ['a file outside the workspace', { files: [{ path: '../x', content: '' }] }, 'files.0.path'],
    ['bad base64', { files: [{ path: 'x', content: '???', encoding: 'base64' }] }, 'files.0.content'],
    ['over 512 KiB of files', { files: [{ path: 'x', content: 'a'.repeat(524_289) }] }, 'files'],
    ['a secret by value', { secrets: [{ env: 'KEY', ref: 'hunter2' }] }, 'secrets.0.ref'],
    ['an image that is a path', { image: '../other' }, 'image'],
    ['a retention of ten years and a day', { privacy: { retentionDays: 3651 } }, 'privacy.retentionDays'],
  ])('refuses %s and names the place', (_, given, path) => {
    expect(complaints(given).map(found => found.path)).toContain(path)
  })

  it('refuses browse and install_packages wherever no microVM can come', () => {
    for (const isolation of ['runc', 'gvisor', 'wasm'])
      for (const tool of ['browse', 'install_packages'])
        expect(complaints({ isolation, tools: ['read_file', tool] })[0]?.path).toBe('tools.1.name')
    for (const isolation of ['shared', 'microvm', 'kata', 'firecracker', 'qemu'])
      expect(complaints({ isolation, tools: ['browse', 'install_packages'] })).toEqual([])
    expect(complaints({ isolation: 'wasm', tools: ['exec', 'node', 'python'] })).toHaveLength(2)
    expect(toolsRefusedBy('runc', ['exec', 'node'])).toEqual([])
  })

  it('refuses what wasm cannot run, with what can be done', () => {
    const mcpServers = [{ name: 'files', command: 'npx', allow: ['*'] }]
    const wasm = (given: object) => complaints({ isolation: 'wasm', ...given }).map(({ path }) => path)
    expect(wasm({ image: 'data' })).toEqual(['image'])
    expect(wasm({ mcpServers })).toEqual(['mcpServers.0.command'])
    expect(wasm({ entrypoint: { command: 'python3', args: ['main.py'] } })).toEqual(['entrypoint.command'])
    for (const args of [[], ['-e', 'x.js'], ['main.cjs']])
      expect(wasm({ entrypoint: { command: 'node', args } })).toEqual(['entrypoint.args'])
    for (const args of [['main.js'], ['src/main.mjs', '-v']])
      expect(wasm({ entrypoint: { command: 'node', args } })).toEqual([])
    expect(wasm({ entrypoint: { command: 'wasi', args: ['agent.wasm', 'a'] } })).toEqual([])
    expect(wasm({ entrypoint: { command: 'wasi', args: ['main.js'] } })).toEqual(['entrypoint.args'])
    expect(wasm({ entrypoint: { command: 'constructor' } })).toEqual(['entrypoint.command'])
    expect(complaints({ isolation: 'runc', mcpServers, entrypoint: { command: 'python3' } })).toEqual([])
  })

  it('is idempotent: a normalised manifest reads as itself, so its hash is stable', () => {
    const entry = fc.oneof(
      fc.constantFrom(...builtInToolNames),
      fc.record(
        {
          name: fc.constantFrom(...builtInToolNames),
          effect: fc.constantFrom('read', 'idempotent', 'once', 'unknown'),
          needsApproval: fc.boolean(),
          timeoutSeconds: fc.integer({ min: 1, max: 3600 }),
          onInterrupted: fc.constantFrom('retry', 'fail', 'ask', 'verify'),
        },
        { requiredKeys: ['name'] },
      ),
    )
    const given = fc.record(
      {
        tools: fc.uniqueArray(entry, { selector: tool => (typeof tool === 'string' ? tool : tool.name), maxLength: 4 }),
        model: fc.constantFrom('auto', 'gpt-5', 'chat_small', 'demo/echo'),
        isolation: fc.constantFrom('Shared', 'MICROVM', 'kata'),
        egress: fc.array(fc.constantFrom({ host: 'A.example' }, { host: '*.b.example', methods: ['post'] }), {
          maxLength: 2,
        }),
        confidence: fc.record({ threshold: fc.double({ min: 0, max: 1, noNaN: true }) }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(given, value => {
        const once = read(value)
        expect(read(once)).toEqual(once)
      }),
      { numRuns: 100 },
    )
  })
})

describe('normaliseTool', () => {
  it('takes the default for interruptions from the effect', () => {
    expect(normaliseTool('exec')).toEqual({
      name: 'exec',
      effect: 'once',
      needsApproval: false,
      timeoutSeconds: 60,
      onInterrupted: 'ask',
    })
    expect(normaliseTool({ name: 'exec', idempotent: true })).toMatchObject({
      effect: 'idempotent',
      onInterrupted: 'retry',
    })
    expect(normaliseTool({ name: 'read_file', onInterrupted: 'fail' })).toMatchObject({ onInterrupted: 'fail' })
  })

  it('leaves the effect of http_request to each call, and waits without a time-out', () => {
    expect(normaliseTool('http_request')).toEqual({ name: 'http_request', needsApproval: false, timeoutSeconds: 30 })
    expect(normaliseTool('wait')).not.toHaveProperty('timeoutSeconds')
    expect(Object.keys(builtInTools)).toHaveLength(12)
  })
})

describe('files', () => {
  it('counts decoded bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), bytes => {
        const content = btoa(String.fromCharCode(...bytes))
        expect(decodedBytes({ content, encoding: 'base64' })).toBe(bytes.length)
      }),
    )
    expect(decodedBytes({ content: 'é', encoding: 'utf8' })).toBe(2)
  })

  it('keeps every path inside the workspace', () => {
    for (const good of ['a', 'a/b.txt', '.env', 'a/..b']) expect(isWorkspacePath(good), good).toBe(true)
    for (const bad of ['', '/a', '..', 'a/../b', 'a//b', './a', 'a\\b', 'a/', 'a\0'])
      expect(isWorkspacePath(bad), bad).toBe(false)
  })
})

describe('isolation table', () => {
  it('gives rank 40 only to hardware virtualisation', () => {
    const strong = isolationValues.filter(value => isolationTable[value].rank === 40)
    expect(strong).toEqual(['microvm', 'kata', 'firecracker', 'qemu'])
  })
})

describe('agentCreate', () => {
  it('takes a top-level systemPrompt as the manifest’s', () => {
    const result = check(agentCreate, { name: 'a', systemPrompt: 'Hi.' })
    expect(result).toMatchObject({ ok: true, value: { manifest: { systemPrompt: 'Hi.', model: 'auto' } } })
  })

  it('leaves an absent manifest absent', () => {
    expect(check(agentCreate, { name: 'a' })).toEqual({ ok: true, value: { name: 'a' } })
  })

  it('names the place inside the manifest', () => {
    expect(check(agentCreate, { name: 'a', manifest: { tools: [{}] } })).toEqual({
      ok: false,
      details: [{ path: 'manifest.tools.0.name', message: 'Required' }],
    })
  })

  it('bounds names and labels', () => {
    for (const name of ['-a', '', 'a b', 'a'.repeat(129)]) expect(check(agentCreate, { name }).ok).toBe(false)
    expect(check(agentCreate, { name: 'a', labels: { k: 1 } }).ok).toBe(false)
    expect(check(agentCreate, { name: 'a', labels: { k: 'v'.repeat(257) } }).ok).toBe(false)
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`k${at}`, 'v']))
    expect(check(agentCreate, { name: 'a', labels: many }).ok).toBe(false)
  })
})
