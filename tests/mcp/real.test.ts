import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { readArguments } from '../../runtime/execution/models/tool-arguments.ts'
import { says } from '../../runtime/execution/testing/engine-fixture.ts'
import { mcpFixture } from './mcp-fixture.ts'
import { EVERYTHING, everythingOverHttp, FILESYSTEM, testOnlyChildProcess } from './real-servers.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const calls = [
  says('', [
    { name: 'mcp__all__echo', arguments: { message: 'hello' } },
    { name: 'mcp__all__get-sum', arguments: { a: 2, b: 40 } },
    { name: 'mcp__all__get-structured-content', arguments: { location: 'Chicago' } },
  ]),
  says('done'),
]
const allow = ['echo', 'get-sum', 'get-structured-content']
const results = [
  { failed: false, content: { content: [{ type: 'text', text: 'Echo: hello' }] } },
  { failed: false, content: { content: [{ type: 'text', text: 'The sum of 2 and 40 is 42.' }] } },
  { failed: false, content: { structuredContent: { conditions: expect.any(String) } } },
]
const steps = [
  ['mcp-list-all', 'mcp', 'completed'],
  ['model-1', 'model', 'completed'],
  ...['mcp-1-1', 'mcp-1-2', 'mcp-1-3'].map(id => [id, 'mcp', 'completed']),
  ['model-2', 'model', 'completed'],
]

it('server-everything over streamable HTTP is used inside a run', async () => {
  const server = await everythingOverHttp()
  open.push(server)
  const fixture = await mcpFixture([server.origin], [{ name: 'all', url: server.url, allow }], calls)
  open.push(fixture)
  const first = await fixture.run()
  expect(first.run).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
  expect(fixture.offered()).toEqual(allow.map(name => `mcp__all__${name}`))
  expect(fixture.told(1)).toMatchObject(results)
  expect(first.steps.map(({ stepId, kind, status }) => [stepId, kind, status])).toEqual(steps)
  // The next run knows the definitions, and asks only when its model wants a call.
  const second = await fixture.run()
  expect(second.run.status).toBe('succeeded')
  expect(second.steps.map(({ stepId }) => stepId)).toEqual(steps.slice(1).map(([id]) => id))
})

it('server-everything adds no number beyond 2^53 as another one, and repeats its digits', async () => {
  const server = await everythingOverHttp()
  open.push(server)
  const answers = [
    says('', [
      { name: 'mcp__all__get-sum', arguments: readArguments('{"a": 1234567890123456789, "b": 1}') },
      { name: 'mcp__all__echo', arguments: readArguments('{"message": "1234567890123456789"}') },
    ]),
    says('done'),
  ]
  const fixture = await mcpFixture([server.origin], [{ name: 'all', url: server.url, allow }], answers)
  open.push(fixture)
  const { run, journal } = await fixture.run()
  expect(run.status).toBe('succeeded')
  const place = 'the number 1234567890123456789 at /a is beyond 2^53 and would be changed'
  expect(fixture.told(1)).toMatchObject([
    { failed: true, content: { error: expect.stringContaining(`mcp__all__get-sum was not called: ${place}`) } },
    { failed: false, content: { content: [{ type: 'text', text: 'Echo: 1234567890123456789' }] } },
  ])
  expect(JSON.stringify(journal)).not.toContain('12345678901234568')
})

it('server-everything over stdio gives the same, through the port of the sandbox', async () => {
  const servers = [{ name: 'all', command: process.execPath, args: [EVERYTHING, 'stdio'], allow }]
  const fixture = await mcpFixture([], servers, calls, { stdioTransportOf: testOnlyChildProcess })
  open.push(fixture)
  const { run, steps: taken } = await fixture.run()
  expect(run).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
  expect(fixture.told(1)).toMatchObject(results)
  expect(taken.map(({ stepId, kind, status }) => [stepId, kind, status])).toEqual(steps)
})

it('server-filesystem over stdio reads and writes, and its refusal is told to the model', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'waybill-mcp-')))
  open.push({ close: async () => rmSync(folder, { recursive: true }) })
  writeFileSync(join(folder, 'in.txt'), 'from the file')
  const servers = [{ name: 'fs', command: process.execPath, args: [FILESYSTEM, folder], allow: ['*'] }]
  const fixture = await mcpFixture(
    [],
    servers,
    [
      says('', [{ name: 'mcp__fs__read_text_file', arguments: { path: join(folder, 'in.txt') } }]),
      says('', [
        { name: 'mcp__fs__write_file', arguments: { path: join(folder, 'out.txt'), content: 'written' } },
        { name: 'mcp__fs__read_text_file', arguments: { path: '/etc/hostname' } },
      ]),
      says('done'),
    ],
    { stdioTransportOf: testOnlyChildProcess },
  )
  open.push(fixture)
  expect((await fixture.run()).run.status).toBe('succeeded')
  expect(fixture.offered()).toContain('mcp__fs__move_file')
  expect(fixture.told(1)).toMatchObject([{ failed: false, content: { content: [{ text: 'from the file' }] } }])
  expect(readFileSync(join(folder, 'out.txt'), 'utf8')).toBe('written')
  expect(fixture.told(2)[1]).toMatchObject({
    failed: true,
    content: { code: 'mcp_failed', error: expect.stringContaining('Access denied') },
  })
})

it('a command is never started where there is no sandbox: the run is refused before anything is asked', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-mcp-'))
  open.push({ close: async () => rmSync(folder, { recursive: true }) })
  const probe = join(folder, 'started')
  const args = ['-e', `require('node:fs').writeFileSync(${JSON.stringify(probe)}, 'x')`]
  const fixture = await mcpFixture([], [{ name: 'fs', command: process.execPath, args, allow: ['*'] }], [says('done')])
  open.push(fixture)
  const { run } = await fixture.run()
  expect(run).toMatchObject({
    status: 'failed',
    error: { code: 'isolation_unavailable', message: expect.stringContaining('give the server a url instead') },
    tokensIn: 0,
  })
  expect(fixture.asked).toEqual([])
  expect(() => readFileSync(probe)).toThrow('ENOENT')
})
