import { expect, it } from 'vitest'
import { openDb } from '../host/open-libsql.ts'
import { rowsOf } from './db.ts'
import { jsonRows } from './sql-values.ts'

it('rows with half of a surrogate pair can be read back, and others are as they were', async () => {
  const db = await openDb(':memory:')
  const halves = ['a\ud800b', '\udc00', '\ud800\ud800', 'x\ud83d']
  const others = ['😀', 'a\\ud800', '\\\\udc00', '', '\u2028', 'é']
  const texts = [...halves, ...others]
  const sql = 'select n.value ->> 0 as text from json_each(?) as n'
  const read = await db.execute({ sql, args: [jsonRows(texts.map(text => [text, 1, null]))] })
  expect(rowsOf<{ text: string }>(read).map(({ text }) => text)).toEqual([
    'a\ufffdb',
    '\ufffd',
    '\ufffd\ufffd',
    'x\ufffd',
    ...others,
  ])
  await db.close()
})
