import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { textLine } from '../host/stderr-lines.ts'
import { createLog } from './log.ts'

const filter = { all: 'info', byTarget: new Map() } as const
const lineOf = (message: string, fields?: Record<string, unknown>) => {
  let line = ''
  const write = (json: string) => {
    line = textLine(json)
  }
  createLog({ filter, write, now: () => new Date('2026-11-24T12:04:05.678Z') })
    .target('router.calls')
    .info(message, fields)
  return line
}

describe('a line of the log for a person', () => {
  it('has the time, level and target first, and quotes a value only where it has to', () => {
    expect(lineOf('listening')).toBe('12:04:05.678 INFO  router.calls: listening')
    expect(
      lineOf('a call', { status: 200, route: null, path: '/v1/messages', because: 'no rung', tried: ['a', 1] }),
    ).toBe(
      '12:04:05.678 INFO  router.calls: a call  status=200 route=null path=/v1/messages because="no rung" tried=["a",1]',
    )
  })

  it('is one line without control characters, whatever a stranger sent', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (message, value) => {
        expect(lineOf(message, { value })).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
      }),
    )
  })
})
