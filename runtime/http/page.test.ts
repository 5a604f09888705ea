import fc from 'fast-check'
import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import { ApiError } from '../../shared/http/api-error.ts'
import { mount } from '../../shared/http/operation.ts'
import { uuidv7 } from '../../shared/ids/uuid-v7.ts'
import { agentEndpoints } from '../../shared/wire/runtime/endpoints/agents.ts'
import { readCursor, writeCursor } from './cursor.ts'
import type { RuntimeHttpEnv } from './http-env.ts'
import { withoutKey } from './idempotent.ts'
import { operation } from './operation.ts'
import { pageOf, pageSql } from './page.ts'

const position = fc.record({ at: fc.nat(Number.MAX_SAFE_INTEGER), id: fc.uuid() })

describe('a cursor', () => {
  it('reads as what was written, for its own list only', () => {
    fc.assert(
      fc.property(position, fc.string(), fc.string(), (at, list, other) => {
        const cursor = writeCursor(at, list)
        expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/)
        expect(readCursor(cursor, list)).toEqual(at)
        if (other !== list) expect(readCursor(cursor, other)).toBeUndefined()
      }),
    )
  })

  it('is refused when a character of it is changed, and when it is any other text', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_ =.'
    fc.assert(
      fc.property(position, fc.nat(60), fc.constantFrom(...alphabet), fc.string(), (at, index, to, text) => {
        const cursor = writeCursor(at, 'list')
        const changed = cursor.slice(0, index) + to + cursor.slice(index + 1)
        if (changed !== cursor) expect(readCursor(changed, 'list')).toBeUndefined()
        expect(readCursor(text, 'list')).toBeUndefined()
      }),
    )
  })
})

interface Row {
  created_ms: number
  id: string
}

async function lister(rows: readonly Row[]) {
  const db = await openDb(':memory:')
  await db.execute('create table things (id text primary key, created_ms integer not null) strict')
  await db.write(
    rows.map(({ id, created_ms }) => ({ sql: 'insert into things values (?, ?)', args: [id, created_ms] })),
  )
  const app = new Hono<RuntimeHttpEnv>()
    .use(async (c, next) => {
      c.set('principal', { tenantId: c.req.header('tenant') ?? 'default', keyId: 'k', scopes: [] })
      await next()
    })
    .onError((error, c) => c.json({ error: error.message }, error instanceof ApiError ? 400 : 500))
  const list = operation(agentEndpoints.list, async call => {
    const page = pageOf(call)
    const { where, order, args } = pageSql(page)
    const found = await db.execute({ sql: `select * from things where true ${where} ${order}`, args })
    const cut = page.cut(found.rows, row => ({ at: Number(row.created_ms), id: String(row.id) }))
    return call.context.json(cut.map(row => row.id))
  })
  mount(app, [list], { maxBodyBytes: 1, idempotent: (_, call) => call.run(withoutKey) })
  return { app, close: () => db.close() }
}

/** The path that the answer's Link header names as the next page. */
function nextOf(answer: Response): string | undefined {
  const link = answer.headers.get('link')
  return link === null ? undefined : /^<(\/v1\/agents\?[^>]+)>; rel="next"$/.exec(link)![1]
}

describe('a list in pages', () => {
  it('gives every row once, newest first, whatever the size of a page and however many share a millisecond', async () => {
    const some = fc.uniqueArray(fc.record({ created_ms: fc.nat(5), id: fc.integer({ min: 0 }).map(n => uuidv7(n)) }), {
      maxLength: 23,
      selector: row => row.id,
    })
    await fc.assert(
      fc.asyncProperty(some, fc.integer({ min: 1, max: 8 }), async (rows, limit) => {
        const { app, close } = await lister(rows)
        const seen: string[] = []
        let pages = 0
        for (let path: string | undefined = `/v1/agents?pageSize=${limit}&label=a:b`; path !== undefined; pages++) {
          const answer: Response = await app.request(path)
          const ids = (await answer.json()) as string[]
          expect(ids.length).toBeLessThanOrEqual(limit)
          seen.push(...ids)
          path = nextOf(answer)
          if (path !== undefined) expect(path).toMatch(new RegExp(`^/v1/agents\\?limit=${limit}&label=a%3Ab&cursor=`))
        }
        const order = (a: Row, b: Row) => b.created_ms - a.created_ms || (a.id < b.id ? 1 : -1)
        expect(seen).toEqual(rows.toSorted(order).map(row => row.id))
        expect(pages).toBe(Math.max(1, Math.ceil(rows.length / limit)))
        close()
      }),
      { numRuns: 40 },
    )
  })

  it('refuses the cursor of another tenant, of other filters, and one that is broken', async () => {
    const { app, close } = await lister([1, 2, 3].map(at => ({ created_ms: at, id: uuidv7(at) })))
    const next = nextOf(await app.request('/v1/agents?limit=1'))!
    expect((await app.request(next)).status).toBe(200)
    for (const [path, headers] of [
      [next, { tenant: 'other' }],
      [next + '&label=a:b', {}],
      [next.slice(0, -1), {}],
      ['/v1/agents?cursor=nonsense', {}],
    ] as const) {
      const answer = await app.request(path, { headers })
      expect(answer.status, path).toBe(400)
      expect(await answer.json()).toMatchObject({ error: expect.stringMatching(/^cursor: /) })
    }
    close()
  })

  it('takes limits from 1 to 200', async () => {
    const { app, close } = await lister([])
    for (const limit of ['0', '201', '-1', '1.5', 'x'])
      expect((await app.request(`/v1/agents?limit=${limit}`)).status, limit).toBe(400)
    for (const limit of ['1', '200', 'undefined', 'null'])
      expect((await app.request(`/v1/agents?limit=${limit}`)).status, limit).toBe(200)
    close()
  })
})
