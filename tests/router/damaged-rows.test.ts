import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { serveRouter } from '../../router/host/node.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { TraceList } from '../../shared/wire/router/traces.ts'
import { messagesAnswer } from '../upstream/answers.ts'
import { answer, scriptedUpstream } from '../upstream/scripted.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const keyOf = (tenant: string) => `${tenant}-secret-of-24-characters`
const LAST_OF_ACME = "tenant_id = 'acme' and seq = (select max(seq) from traces where tenant_id = 'acme')"

async function stored() {
  const folder = await mkdtemp(join(tmpdir(), 'damaged-'))
  ends.push(() => rm(folder, { recursive: true, force: true }))
  const upstream = await scriptedUpstream()
  ends.push(upstream.close)
  upstream.always(answer(200, JSON.stringify(messagesAnswer())))
  const path = join(folder, 'router.db')
  const serve = async () => {
    const router = await serveRouter({
      ROUTER_BIND: '127.0.0.1:0',
      ROUTER_DB: path,
      ROUTER_UPSTREAM_MESSAGES: upstream.origin,
      ROUTER_RECEIPTS: 'durable',
      ROUTER_KEYS: `acme:${keyOf('acme')},beta:${keyOf('beta')},ops!:${keyOf('ops')}`,
      RUST_LOG: 'off',
    })
    const get = (tenant: string, at: string) =>
      fetch(router.origin + at, { headers: { 'x-router-key': keyOf(tenant) } })
    const list = async (tenant: string) => (await (await get(tenant, '/-/traces')).json()) as TraceList
    const call = async (tenant: string) => {
      const headers = { 'x-router-key': keyOf(tenant), 'content-type': 'application/json', 'x-api-key': 'x' }
      const body = JSON.stringify({
        model: 'claude-sonnet-4-5',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'hi' }],
      })
      const sent = await fetch(`${router.origin}/v1/messages`, { method: 'POST', headers, body })
      await sent.text()
      return sent.status
    }
    return { ...router, get, list, call }
  }
  const first = await serve()
  for (let calls = 0; calls < 3; calls++)
    for (const tenant of ['acme', 'beta']) expect(await first.call(tenant)).toBe(200)
  const ids = (await first.list('acme')).traces.map(({ trace_id }) => trace_id)
  await first.close()
  return {
    serve,
    ids,
    async edit(sql: string) {
      const db = await openDb(path)
      await db.execute(sql)
      await db.close()
    },
  }
}

it('a last record that cannot be read breaks its own chain; those of others go on', async () => {
  const { serve, edit } = await stored()
  await edit(`update traces set body = '{' where ${LAST_OF_ACME}`)
  const router = await serve()
  ends.push(router.close)
  expect([await router.call('acme'), await router.call('beta')]).toEqual([200, 200])
  expect((await router.list('beta')).traces).toHaveLength(4)
  const ready = await fetch(`${router.origin}/readyz`)
  expect([ready.status, await ready.json()]).toMatchObject([
    503,
    { checks: { writer: 'a chain in the store is broken: run `router verify`' } },
  ])
})

it('a record that cannot be read takes no other from a list, and is named where it is asked for', async () => {
  const { serve, edit, ids } = await stored()
  await edit(`update traces set body = '{', gates = '{' where tenant_id = 'acme' and seq = 1`)
  const router = await serve()
  ends.push(router.close)
  expect((await router.list('acme')).traces).toHaveLength(2)
  expect((await router.list('ops')).traces).toHaveLength(5)
  expect((await router.get('acme', '/-/evals')).status).toBe(200)
  const found = await router.get('acme', `/-/traces/${ids[1]}`)
  expect([found.status, await found.text()]).toEqual([
    500,
    expect.stringContaining('this trace is damaged in the store'),
  ])
})

it.each([
  ['a checkpoint', "update checkpoints set body = '{' where tenant_id = 'acme'"],
  ['what was learned', "insert into router_meta (key, value) values ('learning/acme/x', '{')"],
  [
    'a calibration',
    `insert into calibration (tenant_id, route_fp, previous, state, t, n, k, updated_at, version)
      values ('beta', 'x', 0, '{', 0.5, 1, 0, '', 1)`,
  ],
  ['the salt of prompt hashes', "update router_meta set value = 'x' where key = 'prompt_salt'"],
  ['a budget', `insert into router_budgets values ('x', 9223372036854775807, '${new Date().toISOString()}')`],
])('%s that cannot be read holds up no call, receipt or list', async (_, sql) => {
  const { serve, edit } = await stored()
  await edit(sql)
  const router = await serve()
  ends.push(router.close)
  expect(await router.call('beta')).toBe(200)
  expect((await router.list('beta')).traces).toHaveLength(4)
  expect((await router.get('ops', '/-/checkpoints')).status).toBe(200)
})
