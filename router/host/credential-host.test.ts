import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, type ScriptedUpstream, scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { type CloudVendors, cloudVendors, headersOf } from '../cloud/testing/cloud-vendors.ts'
import { credentialHost } from './credential-host.ts'
import { serveRouter } from './node.ts'

let folder: string
let vendors: CloudVendors
let upstream: ScriptedUpstream
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-host-'))
  vendors = await cloudVendors()
  upstream = await scriptedUpstream()
})
afterEach(async () => {
  await vendors.close()
  await upstream.close()
  await rm(folder, { recursive: true, force: true })
})

it('replaces a file of the account whole, for this account alone, and leaves nothing where it cannot', async () => {
  const host = credentialHost({ HOME: folder })
  const path = join(folder, 'token.json')
  await writeFile(path, 'old', { mode: 0o644 })
  await host.writeFile(path, 'new')
  expect([await readFile(path, 'utf8'), (await stat(path)).mode & 0o777]).toEqual(['new', 0o600])
  await expect(host.writeFile(join(folder, 'missing', 'token.json'), 'x')).rejects.toThrow()
  expect(await readdir(folder)).toEqual(['token.json'])
  expect(host.home).toBe(folder)
})

it('is what the program finds the role of its machine with, and a log of everything holds no key', async () => {
  upstream.always(answer(200, JSON.stringify(messagesAnswer('by a role'))))
  const config = join(folder, 'routing.toml')
  await writeFile(
    config,
    `price = [{ model = "aws/m", input_per_mtok = 1, output_per_mtok = 5 }]
provider = [{ id = "aws", dialect = "messages", base_url = "${upstream.origin}", auth = "sigv4", region = "eu-west-1" }]
route = [{ match = {}, mode = "enforce", ladder = ["aws/m"], gates = ["non-empty"] }]
`,
  )
  const lines: string[] = []
  const write = process.stderr.write.bind(process.stderr)
  process.stderr.write = (chunk: string | Uint8Array) => {
    lines.push(String(chunk))
    return true
  }
  try {
    const router = await serveRouter({
      HOME: folder,
      ROUTER_DB: join(folder, 'router.db'),
      ROUTER_BIND: '127.0.0.1:0',
      ROUTER_CONFIG: config,
      ROUTER_LOG: 'trace',
      ROUTER_LOG_FORMAT: 'json',
      AWS_EC2_METADATA_SERVICE_ENDPOINT: vendors.origin,
    })
    const ask = () =>
      fetch(`${router.origin}/v1/messages`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'auto', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] }),
      })
    const calls = await Promise.all(Array.from({ length: 8 }, ask))
    expect(calls.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect(vendors.asked('/latest/api/token')).toHaveLength(1)
    expect(headersOf(upstream.seen[0]!).get('authorization')).toContain(`Credential=${vendors.given.keys[0]}/`)
    await router.close()
  } finally {
    process.stderr.write = write
  }
  expect(lines.join('')).toContain('a call was routed')
  expect(lines.join('')).not.toMatch(/secret\/of|session-of|ASIA0/)
})
