import { afterEach, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { Db } from '../../shared/sql/db.ts'
import { closeAll, fixture, get, ids, listen, said, saying, upTo } from './session-fixture.ts'
import type { Received } from './sse.ts'

afterEach(closeAll)

const TURNS = 30
const texts = Array.from({ length: TURNS }, (_, at) => `${at} `.repeat(60_000))

it('a session of long turns is read a little at a time, whatever is asked of it', async () => {
  const db = await openDb(':memory:')
  let most = 0
  const watched: Db = {
    ...db,
    async execute(statement) {
      const found = await db.execute(statement)
      const read = found.rows.flatMap(({ text, input }) => [text, input])
      most = Math.max(
        most,
        read.reduce<number>((sum, one) => sum + (typeof one === 'string' ? one.length : 0), 0),
      )
      return found
    },
  }
  const speaker = await fixture(
    texts.map(text => saying(text)),
    { db },
    { session: { historyTurns: 1 } },
  )
  const { id } = await speaker.opened()
  for (let at = 0; at < TURNS; at++) await said(speaker, id, `question ${at} ${'?'.repeat(50_000)}`)
  // Of another process, which has heard nothing of it.
  const reader = await fixture(undefined, { db: watched })

  const { messages = [] } = await get(reader, id)
  expect(messages.at(-1)).toMatchObject({ role: 'assistant', content: texts.at(-1) })
  expect(messages.length).toBeGreaterThan(20)
  expect(messages.reduce((sum, { content }) => sum + content.length, 0)).toBeLessThanOrEqual(4_000_000)
  const places = messages.filter(({ role }) => role === 'user').map(({ content }) => Number(content.split(' ')[1]))
  expect(places).toEqual(Array.from(places, (_, at) => TURNS - places.length + at))

  for (const [query, lastId, expected] of [
    ['', '0', texts],
    ['?replay=20', undefined, texts.slice(-20)],
  ] as const) {
    const stream = await listen(reader, id, query, lastId)
    const heard: Received[] = []
    while (heard.length < expected.length) heard.push(...(await upTo(stream, 'message_completed')))
    expect(heard.map(({ data }) => data.text)).toEqual(expected)
    expect(ids(heard)).toEqual(ids(heard).toSorted((a, b) => a - b))
    await stream.stop()
  }
  // A turn that is longer than a page is read whole.
  expect(most).toBeLessThan(1_500_000)
})
