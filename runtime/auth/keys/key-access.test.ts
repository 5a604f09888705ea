import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../shared/log/log.ts'
import { manualClock } from '../../../shared/time/testing/manual-clock.ts'
import type { ApiKey, ApiKeyCreated } from '../../../shared/wire/runtime/auth.ts'
import { createRuntime } from '../../runtime.ts'
import { fixture, ROOT_KEY } from '../testing/fixture.ts'
import { hashKey, keyAccess, newApiKey } from './key-access.ts'
import type { KeyRow } from './store.ts'

function scripted() {
  const clock = manualClock(new Date(1_000_000))
  const rows = new Map<string, KeyRow>()
  const reads: string[] = []
  const touched: [string, number][][] = []
  let gate: Promise<void> | undefined
  const access = keyAccess({
    now: clock.now,
    log: silentLog(),
    bootstrapKey: ROOT_KEY,
    store: {
      async getByHash(hash) {
        reads.push(hash)
        const row = rows.get(hash)
        await gate
        return row
      },
      async touch(used) {
        touched.push([...used])
      },
    },
  })
  function add(row: Partial<KeyRow> = {}): { rawKey: string; row: KeyRow } {
    const rawKey = newApiKey()
    const made: KeyRow = {
      id: `id-${rows.size}`,
      tenantId: 't',
      name: 'k',
      prefix: '',
      scopes: [],
      createdMs: 0,
      expiresMs: undefined,
      revokedMs: undefined,
      usedMs: undefined,
      ...row,
    }
    rows.set(hashKey(rawKey), made)
    return { rawKey, row: made }
  }
  return { clock, rows, reads, touched, access, add, hold: (until: Promise<void>) => (gate = until) }
}

describe('a key that is used', () => {
  it('costs one read a second, however often it is used', async () => {
    const { access, add, reads, clock } = scripted()
    const { rawKey, row } = add()
    for (let i = 0; i < 1000; i++) {
      expect(await access.principalOf(rawKey)).toEqual({ tenantId: 't', keyId: row.id, scopes: [] })
      clock.advance(3)
    }
    expect(reads.length).toBe(3)
  })

  it('is refused from its last moment on, also between two reads', async () => {
    const { access, add, clock } = scripted()
    const { rawKey } = add({ expiresMs: 1_000_500 })
    clock.advance(499)
    expect(await access.principalOf(rawKey)).toBeDefined()
    clock.advance(1)
    expect(await access.principalOf(rawKey)).toBeUndefined()
  })

  it('is refused at once after it was revoked here, and within a second when elsewhere', async () => {
    const { access, add, rows, clock } = scripted()
    const [here, elsewhere] = [add(), add()]
    for (const { rawKey, row } of [here, elsewhere]) {
      expect(await access.principalOf(rawKey)).toBeDefined()
      rows.set(hashKey(rawKey), { ...row, revokedMs: 1_000_000 })
    }
    access.revoked(here.row.id)
    expect(await access.principalOf(here.rawKey)).toBeUndefined()
    clock.advance(1000)
    expect(await access.principalOf(elsewhere.rawKey)).toBeUndefined()
  })

  it('does not come back through a read that was under way when it was revoked', async () => {
    const { access, add, rows, hold } = scripted()
    const { rawKey, row } = add()
    const { promise, resolve } = Promise.withResolvers<void>()
    hold(promise)
    const early = access.principalOf(rawKey)
    rows.set(hashKey(rawKey), { ...row, revokedMs: 1_000_000 })
    access.revoked(row.id)
    resolve()
    await early
    expect(await access.principalOf(rawKey)).toBeUndefined()
  })

  it('has its last use written in batches', async () => {
    const { access, add, touched, clock } = scripted()
    const keys = [add(), add()]
    for (let i = 0; i < 100; i++) {
      for (const { rawKey } of keys) await access.principalOf(rawKey)
      clock.advance(199)
    }
    await access.flush()
    expect(touched.length).toBeLessThanOrEqual(4)
    expect(new Map(touched.flat()).get('id-1')).toBe(1_000_000 + 99 * 199)
  })
})

it('takes the bootstrap key without the store, with every scope', async () => {
  const { access, reads } = scripted()
  const { scopes } = (await access.principalOf(ROOT_KEY))!
  expect(scopes).toContain('platform:admin')
  expect(reads).toEqual([])
})

describe('API keys over HTTP', () => {
  it('are shown once, and stand in the store as a digest', async () => {
    const { call, db, close } = await fixture()
    const { body, status } = await call<{ key: ApiKey; rawKey: string }>('POST', '/v1/api-keys', {
      body: { name: 'ci é \u0001', scopes: ['agents:read', 'agents:read'] },
    })
    expect(status).toBe(201)
    expect(body.rawKey).toMatch(/^wb_live_[A-Za-z0-9_-]{43}$/)
    expect(body.key).toMatchObject({ prefix: body.rawKey.slice(0, 12), scopes: ['agents:read'], status: 'active' })
    const stored = JSON.stringify((await db.execute('select * from api_keys')).rows)
    expect(stored).not.toContain(body.rawKey.slice(12))
    const { body: list } = await call<ApiKey[]>('GET', '/v1/api-keys')
    expect(list).toEqual([body.key])
    await close()
  })

  it('mint only what they hold, and no past', async () => {
    const { call, newKey, close } = await fixture()
    const { rawKey: key } = await newKey({ scopes: ['keys:write', 'agents:write'] })
    const mint = (body: object) => call('POST', '/v1/api-keys', { key, body: { name: 'x', ...body } })
    expect((await mint({ scopes: ['agents:read'] })).status).toBe(201)
    for (const scopes of [['runs:read'], ['admin'], ['platform:admin'], []]) {
      const { status, body } = await mint({ scopes })
      expect([status, body.code], String(scopes)).toEqual([403, 'forbidden_scope'])
      expect(body.error).toContain(scopes[0] ?? 'admin')
    }
    const { body } = await mint({ scopes: ['agents:read'], expiresAt: '2026-01-01T00:00:00Z' })
    expect(body.details).toEqual([{ path: 'expiresAt', message: 'expected a time in the future' }])
    await close()
  })

  it('mint nothing that lasts longer than they do', async () => {
    const { call, newKey, clock, close } = await fixture()
    const { rawKey: key } = await newKey({ scopes: ['keys:write', 'agents:read'], expiresAt: '2026-01-02T04:00:00Z' })
    const mint = (expiresAt?: string) =>
      call<ApiKeyCreated>('POST', '/v1/api-keys', { key, body: { name: 'x', scopes: ['agents:read'], expiresAt } })
    const inherits = await mint()
    expect(inherits.body.key.expiresAt).toBe('2026-01-02T04:00:00.000Z')
    expect((await mint('2026-01-02T03:30:00Z')).status).toBe(201)
    const longer = await mint('2026-01-02T04:00:01Z')
    expect([longer.status, longer.body]).toMatchObject([
      400,
      { details: [{ path: 'expiresAt', message: expect.stringContaining('ends at 2026-01-02T04:00:00.000Z') }] },
    ])
    clock.advance(3_600_000)
    expect((await call('GET', '/v1/agents', { key: inherits.body.rawKey })).status).toBe(401)
    await close()
  })

  it('revoke what they could have minted, and themselves', async () => {
    const { call, newKey, close } = await fixture()
    const admin = await newKey({ scopes: ['admin'] })
    const everything = await newKey({ scopes: [] })
    const reader = await newKey({ scopes: ['agents:read'] })
    const { rawKey: key, key: self } = await newKey({ scopes: ['keys:write', 'agents:read'] })
    const revoke = (id: string) => call('DELETE', `/v1/api-keys/${id}`, { key })
    for (const stronger of [admin, everything]) {
      expect(await revoke(stronger.key.id)).toMatchObject({ status: 403, body: { code: 'forbidden_scope' } })
      expect((await call('GET', '/v1/agents', { key: stronger.rawKey })).status).toBe(200)
    }
    for (const { id } of [reader.key, self]) expect((await revoke(id)).status).toBe(204)
    await close()
  })

  it('show when they were used last, and whether they still work', async () => {
    const { call, newKey, clock, close } = await fixture()
    const used = await newKey({ name: 'used', expiresAt: '2026-01-02T04:00:00+00:00' })
    clock.advance(5000)
    await call('GET', '/v1/agents', { key: used.rawKey })
    const shown = async () => (await call<ApiKey[]>('GET', '/v1/api-keys')).body[0]!
    expect(await shown()).toMatchObject({ status: 'active', lastUsedAt: '2026-01-02T03:04:10.678Z' })
    clock.advance(3_600_000)
    expect((await shown()).status).toBe('expired')
    for (let i = 0; i < 2; i++) expect((await call('DELETE', `/v1/api-keys/${used.key.id}`)).status).toBe(204)
    expect((await shown()).status).toBe('revoked')
    await close()
  })

  it('that another process revokes are refused within a second', async () => {
    const one = await fixture()
    const two = createRuntime({ db: one.db, clock: one.clock, bootstrapKey: ROOT_KEY })
    const { rawKey, key } = await one.newKey()
    const read = async () =>
      (await two.fetch(new Request('http://local/v1/agents', { headers: { authorization: `Bearer ${rawKey}` } })))
        .status
    expect(await read()).toBe(200)
    await one.call('DELETE', `/v1/api-keys/${key.id}`)
    one.clock.advance(1000)
    expect(await read()).toBe(401)
    await one.close()
  })
})
