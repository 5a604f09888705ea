import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { manyProcesses } from './many-processes.ts'
import { routerChild } from './router-child.ts'

let folder: string
let provider: Server
const children: ChildProcess[] = []
let asked = 0

const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
})

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-budget-kill-'))
  // The first call is billed, and its answer does not come.
  provider = createServer((request, response) => {
    request.resume().on('end', () => {
      if (++asked > 1) response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER)
    })
  })
  await new Promise<void>(resolve => provider.listen(0, '127.0.0.1', resolve))
  const { port } = provider.address() as AddressInfo
  await writeFile(
    join(folder, 'router.toml'),
    `version = 1
price = [{ model = "mock/m", input_per_mtok = 1, output_per_mtok = 1000 }]
provider = [{ id = "mock", dialect = "chat", base_url = "http://127.0.0.1:${port}", auth = "none" }]
budget = { per_day_usd = 1.5 }
[[route]]
match = {}
mode = "enforce"
ladder = ["mock/m"]
`,
  )
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  provider.closeAllConnections()
  provider.close()
  await rm(folder, { recursive: true, force: true })
})

const serve = () => routerChild(join(folder, 'store.db'), { ROUTER_CONFIG: join(folder, 'router.toml') }, children)

const call = (origin: string) =>
  fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', max_tokens: 1000, messages: [{ role: 'user', content: 'Hello' }] }),
  })

it('what was open when a router was killed counts as spent when it is there again', async () => {
  const first = await serve()
  const cut = call(first.origin).catch(() => undefined)
  await expect.poll(() => asked, { timeout: 10_000 }).toBe(1)
  // It is stored within a second.
  await wait(2000)
  first.child.kill('SIGKILL')
  await Promise.all([once(first.child, 'close'), cut])

  const second = await serve()
  const refused = await call(second.origin)
  expect([refused.status, asked]).toEqual([402, 1])
  expect(await refused.text()).toContain('the budget of this day')
})

it('what was open counts as spent where all processes of a router are killed at once', async () => {
  const args = ['--config', join(folder, 'router.toml'), '--db', join(folder, 'many.db')]
  asked = 0
  const first = await manyProcesses(args)
  children.push(first.child)
  const { serving, writer } = await first.pids()
  const cut = call(first.origin).catch(() => undefined)
  await expect.poll(() => asked, { timeout: 10_000 }).toBe(1)
  // It is stored within a second.
  await wait(2000)
  for (const pid of [first.child.pid!, writer, ...serving]) process.kill(pid, 'SIGKILL')
  await cut

  const second = await manyProcesses(args)
  children.push(second.child)
  const refused = await call(second.origin)
  expect([refused.status, asked]).toEqual([402, 1])
  expect(await refused.text()).toContain('the budget of this day')
  await second.stop()
})
