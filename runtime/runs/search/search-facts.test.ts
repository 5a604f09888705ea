import { createClient } from '@libsql/client'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { docNumber, matchExpression, tenantWord } from './search-facts.ts'

it('asks for all words of one tenant, the longer ones as beginnings, and knows a whole id by its end', () => {
  expect(matchExpression([tenantWord('t')], 'slow "the" NEAR(x') ?? '').toBe(
    `facts : ("${tenantWord('t')}") AND words : ("slow" * AND """the""" * AND "NEAR(x" *)`,
  )
  expect(matchExpression([tenantWord('t')], '01900000-0000-7000-8000-0000000000ab')).toContain('"0000000000ab" *')
  for (const typed of ['', '  ', '*', '" AND "', '--- :']) {
    const asked = matchExpression([tenantWord('t')], typed)
    expect(asked === undefined || !asked.includes('("" '), typed).toBe(true)
  }
  expect(matchExpression([tenantWord('t')], '* " ( )')).toBe(undefined)
})

it('is read by the index whatever is typed, and finds nothing of another tenant', async () => {
  const client = createClient({ url: ':memory:' })
  await client.execute(
    `create virtual table run_search using fts5 (facts, words, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2')`,
  )
  const insert = 'insert into run_search (rowid, facts, words) values (?, ?, ?)'
  await client.execute({ sql: insert, args: [1, tenantWord('theirs'), 'facts words near and or not secret'] })
  await client.execute({ sql: insert, args: [2, tenantWord('own'), 'facts words near and or not plain'] })
  const find = async (typed: string) => {
    const match = matchExpression([tenantWord('own')], typed)
    if (match === undefined) return []
    const { rows } = await client.execute({
      sql: 'select rowid as id from run_search where run_search match ?',
      args: [match],
    })
    return rows.map(({ id }) => id)
  }
  expect(await find('near plain')).toEqual([2])
  expect(await find('secret')).toEqual([])
  const syntax = fc.constantFrom(
    '"',
    '*',
    '(',
    ')',
    ':',
    '-',
    '^',
    '{',
    '}',
    '+',
    'OR',
    'NOT',
    'AND',
    'NEAR',
    'facts',
    tenantWord('theirs'),
    ' ',
    '\0',
    ';',
    "'",
    '\ud800',
  )
  const typed = fc
    .array(fc.oneof(syntax, fc.string({ unit: 'binary' })), { maxLength: 12 })
    .map(parts => parts.join(''))
  await fc.assert(
    fc.asyncProperty(typed, async words => {
      expect(await find(words)).not.toContain(1)
    }),
    { numRuns: 500 },
  )
  client.close()
})

it('numbers an entry within twenty bits', () => {
  fc.assert(fc.property(fc.uuid(), id => docNumber(id) >= 0 && docNumber(id) < 2 ** 20))
})
