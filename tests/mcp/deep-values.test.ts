import { afterEach, expect, it } from 'vitest'
import { says } from '../../runtime/execution/testing/engine-fixture.ts'
import { KEY } from '../runtime/api.ts'
import { mcpFixture } from './mcp-fixture.ts'
import { scriptedServer, tool } from './scripted-server.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const DEEP = '@deep'
const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
/** Beyond what is kept, and beyond what the stack holds. */
const LEVELS = [600, 5000, 100_000]

async function fixture(levels: number, answers: ReturnType<typeof says>[], server: object = {}) {
  const remote = await scriptedServer()
  open.push(remote)
  remote.written = text => text.replace(`"${DEEP}"`, nested(levels))
  const on = await mcpFixture([remote.origin], [{ name: 'far', url: remote.url, allow: ['write'], ...server }], answers)
  open.push(on)
  return { ...on, remote }
}

const answers = () => [says('', [{ name: 'mcp__far__write', arguments: { n: 1 } }]), says('done')]

it.each([
  ['a server', {}],
  ['a server that is greeted with a secret', { headers: { 'x-key': { secretRef: 'secret/far' } } }],
])('a result of %s is cut where it is nested too deep', async (_, server) => {
  for (const levels of LEVELS) {
    const on = await fixture(levels, answers(), server)
    await on.json(200, 'PUT', '/v1/secrets/far', { value: 'a-secret-value' })
    on.remote.onCall = () => ({ content: [], structuredContent: { x: DEEP } })
    expect((await on.run()).run.status).toBe('succeeded')
    const [told] = on.told(1)
    expect([told?.failed, on.remote.calls.length]).toEqual([false, 1])
    expect(JSON.stringify(told)).toContain('nested deeper than 480 levels')
  }
})

it('a list of tools with one that is nested too deep is read', async () => {
  for (const levels of LEVELS) {
    const on = await fixture(levels, answers())
    on.remote.tools = [tool('write'), { ...tool('odd'), inputSchema: { type: 'object', default: DEEP } }]
    expect((await on.run()).run.status).toBe('succeeded')
    expect(on.told(1)).toMatchObject([{ failed: false }])
  }
})

it('a final answer that is nested too deep is asked for again', async () => {
  for (const levels of LEVELS) {
    const on = await fixture(levels, [says(`{"x":${nested(levels)}}`), says('{"x":1}')])
    await on.publish({ outputSchema: { type: 'object' }, outputRepairs: 1 })
    expect((await on.run()).run).toMatchObject({ status: 'succeeded', output: { x: 1 } })
    expect(JSON.stringify(on.asked[1]?.messages)).toContain('nested too deep')
  }
})

it('a call of POST /mcp that is nested too deep is refused', async () => {
  const on = await fixture(0, [])
  for (const levels of LEVELS) {
    const params = `{"name":"start_run","arguments":{"agentName":"worker","input":{"x":${nested(levels)}}}}`
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', accept: '*/*' }
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`
    const answer = await on.runtime.fetch(new Request('http://localhost/mcp', { method: 'POST', headers, body }))
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ code: 'bad_json', error: expect.stringContaining('nested too deep') })
  }
})
