import { nativeScrypt } from '../../../shared/host/native-crypto.ts'
import { openDb } from '../../../shared/host/open-libsql.ts'
import type { Db } from '../../../shared/sql/db.ts'
import { manualClock } from '../../../shared/time/testing/manual-clock.ts'
import type { ApiKeyCreate, ApiKeyCreated, Tenant } from '../../../shared/wire/runtime/auth.ts'
import type { ErrorBody } from '../../../shared/wire/runtime/error.ts'
import { createRuntime, type RuntimeOptions } from '../../runtime.ts'
import type { Scrypt } from '../password.ts'

export const ROOT_KEY = `wb_live_${'r'.repeat(43)}`
export const START = new Date('2026-01-02T03:04:05.678Z')

/** As quick as a test wants it, and still a function of password and salt. */
export const quickScrypt: Scrypt = async (password, salt, bytes) => {
  const digest = await crypto.subtle.digest('SHA-256', new Uint8Array([...salt, ...password]))
  return new Uint8Array(digest).slice(0, bytes)
}

export interface Sent {
  key?: string
  headers?: Record<string, string>
  body?: unknown
  address?: string
}

export interface Got<T> {
  status: number
  /** As the test says; an error's body where it says nothing. */
  body: T
  headers: Headers
}

export type Fixture = Awaited<ReturnType<typeof fixture>>

/** A whole runtime in this process, with a clock that stands still and the bootstrap key as its first key. */
export async function fixture(options: Partial<RuntimeOptions> = {}) {
  const clock = manualClock(START)
  const db: Db = options.db ?? (await openDb(':memory:'))
  const runtime = createRuntime({ db, clock, bootstrapKey: ROOT_KEY, scrypt: nativeScrypt, ...options })
  await runtime.ready()

  async function call<T = ErrorBody>(method: string, path: string, sent: Sent = {}): Promise<Got<T>> {
    const { key = ROOT_KEY, body, address } = sent
    const headers = new Headers(sent.headers)
    if (key !== '') headers.set('authorization', `Bearer ${key}`)
    if (body !== undefined) headers.set('content-type', 'application/json')
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const request = new Request(`http://local${path}`, { method, headers, ...(body !== undefined && { body: text }) })
    const answer = await runtime.fetch(request, address === undefined ? {} : { address })
    const got = await answer.text()
    return { status: answer.status, headers: answer.headers, body: (got === '' ? undefined : JSON.parse(got)) as T }
  }

  return {
    runtime,
    db,
    clock,
    call,
    async newKey(wanted: Partial<ApiKeyCreate> = {}, tenantId = 'default'): Promise<ApiKeyCreated> {
      const { status, body } = await call<ApiKeyCreated>('POST', `/v1/tenants/${tenantId}/api-keys`, {
        body: { name: 'k', ...wanted },
      })
      if (status !== 201) throw new Error(JSON.stringify(body))
      return body
    },
    async newTenant(name = 'other'): Promise<string> {
      return (await call<Tenant>('POST', '/v1/tenants', { body: { name } })).body.id
    },
    async close() {
      await runtime.close()
      if (options.db === undefined) db.close()
    },
  }
}
