import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { expectWithin } from '../crowding.ts'
import { completionFrames, completionOf } from '../upstream/frames.ts'
import { type Script, stream } from '../upstream/scripted.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

const open: ProviderFixture[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

const LONG = `${'a'.repeat(5000)}!`
const outputSchema = { type: 'object', properties: { x: { type: 'string', pattern: '^(a+)+$' } } }
const says =
  (content: string): Script =>
  (response, seen, request) =>
    stream(completionFrames(completionOf([{ content }])))(response, seen, request)

async function fixture(options: Parameters<typeof providerFixture>[0] = {}) {
  const made = await providerFixture(options)
  open.push(made)
  made.remote.always(says(JSON.stringify({ x: LONG })))
  return made
}

describe('a schema that a tenant wrote', () => {
  it('is not fitted within a second, and others are answered meanwhile', async () => {
    const made = await fixture()
    await made.configure('openai-compatible')
    const before = performance.now()
    const ran = made.ran('openai-compatible/local', { outputSchema, outputRepairs: 0 })
    let slowest = 0
    for (let over = false; !over; ) {
      const asked = performance.now()
      await made.json(200, 'GET', '/healthz')
      slowest = Math.max(slowest, performance.now() - asked)
      over = await Promise.race([ran.then(() => true), new Promise<false>(done => setTimeout(done, 5, false))])
    }
    const { run } = await ran
    expect(run).toMatchObject({
      status: 'failed',
      error: { code: 'output_invalid', message: '#/x: String does not match pattern.' },
    })
    expectWithin(performance.now() - before, 5000)
    expectWithin(slowest, 1000)
  })

  it('takes what fits it', async () => {
    const made = await fixture()
    await made.configure('openai-compatible')
    made.remote.always(says('```json\n{"x": "aaa"}\n```'))
    const { run } = await made.ran('openai-compatible/local', { outputSchema, outputRepairs: 0 })
    expect(run).toMatchObject({ status: 'succeeded', output: { x: 'aaa' } })
  })

  it('and an answer of nothing but line ends take no time', async () => {
    const made = await fixture()
    await made.configure('openai-compatible')
    made.remote.always(says(`\`\`\`json\n${'\n'.repeat(20_000)}x`))
    const { run } = await made.ran('openai-compatible/local', { outputSchema, outputRepairs: 0 })
    expect(run).toMatchObject({ status: 'failed', error: { code: 'output_invalid' } })
  })

  it('is refused with its place where a pattern cannot be matched in linear time', async () => {
    const made = await fixture()
    const manifest = { outputSchema: { type: 'object', properties: { x: { pattern: '(a)\\1' } } } }
    const message = '#/properties/x: the pattern (a)\\1 cannot be used: \\1 is not supported at character 6'
    const details = [{ path: 'manifest.outputSchema', message }]
    const refused = await made.json(400, 'POST', '/v1/agents', { name: 'worker', manifest })
    expect(refused).toMatchObject({ code: 'validation_failed', details })
    await made.json(201, 'POST', '/v1/agents', { name: 'worker', manifest: {} })
    await made.json(400, 'POST', '/v1/agents/worker/versions', { manifest })
  })

  it('does not hold up a process that begins again with such a run in flight', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-schema-'))
    try {
      const first = await fixture({ url: `file:${join(folder, 'a.db')}`, owner: 'first' })
      await first.configure('openai-compatible')
      // It holds its answer back until the store was taken as it is.
      let taken = () => {}
      const isTaken = new Promise<void>(done => {
        taken = done
      })
      first.remote.always((response, seen, request) => {
        void isTaken.then(() => says(JSON.stringify({ x: LONG }))(response, seen, request))
      })
      const manifest = { model: 'openai-compatible/local', outputSchema, outputRepairs: 0 }
      await first.json(201, 'POST', '/v1/agents', { name: 'worker', manifest })
      const { id } = await first.json<{ id: string }>(201, 'POST', '/v1/runs', {
        agentName: 'worker',
        input: { prompt: 'x' },
      })
      await expect.poll(() => first.remote.seen.length, { timeout: 5000 }).toBe(1)
      for (const end of ['', '-wal']) await copyFile(join(folder, `a.db${end}`), join(folder, `b.db${end}`))
      taken()
      const isGone = (owner: string) => owner === 'first'
      const second = await fixture({ url: `file:${join(folder, 'b.db')}`, owner: 'second', isGone })
      await second.json(200, 'GET', '/healthz')
      const status = async () => (await second.json<{ status: string }>(200, 'GET', `/v1/runs/${id}`)).status
      await expect.poll(status, { timeout: 10_000 }).toBe('failed')
      await second.json(200, 'GET', '/healthz')
    } finally {
      for (const one of open.splice(0)) await one.close()
      await rm(folder, { recursive: true })
    }
  })
})
