import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { check } from '../issues.ts'
import { AGENT_NAME, id, moment, pageQuery, timestamp, usdLimit } from './conventions.ts'
import { runListQuery } from './run.ts'

describe('limit', () => {
  it('is 50 when absent, also as the literal text undefined or null', () => {
    for (const given of [{}, { limit: 'undefined' }, { limit: 'null' }, { pageSize: 'null' }])
      expect(check(pageQuery, given)).toEqual({ ok: true, value: { limit: 50 } })
  })

  it('takes 1 to 200 and nothing else', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.integer({ min: -300, max: 300 }).map(String), fc.string(), fc.double().map(String)),
        given => {
          const result = check(pageQuery, { limit: given })
          if (given === 'undefined' || given === 'null') return
          const fits = /^-?\d+$/.test(given) && Number(given) >= 1 && Number(given) <= 200
          expect(result.ok).toBe(fits)
          if (result.ok) expect(result.value.limit).toBe(Number(given))
          else expect(result.details).toEqual([{ path: 'limit', message: 'expected an integer from 1 to 200' }])
        },
      ),
    )
  })

  it('is also called pageSize, as cursor is pageToken and agentName is agent', () => {
    expect(check(runListQuery, { pageSize: '7', pageToken: 'c', agent: 'a', status: 'undefined', zz: '1' })).toEqual({
      ok: true,
      value: { limit: 7, cursor: 'c', agentName: 'a' },
    })
    expect(check(runListQuery, { pageSize: '7', limit: '8' }).ok).toBe(false)
  })

  it('names a filter value that cannot be', () => {
    expect(check(runListQuery, { status: 'done' })).toMatchObject({ ok: false, details: [{ path: 'status' }] })
  })
})

describe('times and ids', () => {
  it('reads a timestamp as answers write it, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.date({ noInvalidDate: true, min: new Date('2000-01-01T00:00:00Z'), max: new Date('2100-01-01T00:00:00Z') }),
        date => {
          expect(check(timestamp, date.toISOString()).ok).toBe(true)
        },
      ),
    )
    for (const bad of ['2026-01-02T03:04:05Z', '2026-01-02', '2026-13-02T03:04:05.678Z', 0])
      expect(check(timestamp, bad).ok, String(bad)).toBe(false)
  })

  it('reads a moment in a request with any zone, but never without', () => {
    expect(check(moment, '2026-01-02T03:04:05+02:00').ok).toBe(true)
    expect(check(moment, '2026-01-02T03:04:05').ok).toBe(false)
  })

  it('takes lower-case UUIDs of any version', () => {
    expect(check(id, '11111111-1111-4111-8111-111111111111').ok).toBe(true)
    expect(check(id, '0197F0A0-0000-7000-8000-000000000000').ok).toBe(false)
  })

  it('lets agent names start with a letter or a digit', () => {
    for (const good of ['a', '9x', 'A.b-c_d', 'a'.repeat(128)]) expect(AGENT_NAME.test(good)).toBe(true)
    for (const bad of ['.a', '', 'ä', 'a/b', 'a'.repeat(129)]) expect(AGENT_NAME.test(bad)).toBe(false)
  })
})

describe('usdLimit', () => {
  it('takes every amount of whole nano-dollars', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 9_000_000_000_000_000 }), nano => {
        expect(check(usdLimit, nano / 1e9).ok).toBe(true)
      }),
    )
  })

  it('refuses a tenth decimal, less than nothing and more than can be held', () => {
    for (const bad of [1e-10, 0.1234567891, -1, 9_000_001, Number.NaN, '1']) expect(check(usdLimit, bad).ok).toBe(false)
  })
})
