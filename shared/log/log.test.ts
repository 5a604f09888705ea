import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readJson } from '../json/read-json.ts'
import { createLog, parseLogFilter } from './log.ts'

function capture(filter = 'trace') {
  const lines: string[] = []
  const log = createLog({ filter: parseLogFilter(filter)!, write: line => lines.push(line), now: () => new Date(0) })
  return { log, lines, last: () => readJson(lines.at(-1)!) as Record<string, unknown> }
}

describe('log', () => {
  it('writes one JSON line with time, level, target, message and fields', () => {
    const { log, lines } = capture()
    log.target('router.http').info('listening', { port: 8080 })
    expect(readJson(lines[0]!)).toEqual({
      time: '1970-01-01T00:00:00.000Z',
      level: 'info',
      target: 'router.http',
      message: 'listening',
      port: 8080,
    })
  })

  it('filters by level and by target', () => {
    const { log, lines } = capture('warn,router.store=debug,noisy=off')
    log.info('no')
    log.target('noisy').error('no')
    log.target('router.store').debug('yes')
    log.warn('yes')
    expect(lines).toHaveLength(2)
  })

  it('does not read a filter with an unknown level', () => {
    expect(parseLogFilter('loud')).toBeUndefined()
    expect(parseLogFilter('info,router=loud')).toBeUndefined()
    expect(parseLogFilter('off')).toEqual({ all: 'off', byTarget: new Map() })
  })

  it('says where in the source an error comes from in faults, and otherwise where debug is asked for', () => {
    const error = new Error('away', { cause: new Error('refused') })
    const { log, last } = capture('info,router.store=debug')
    log.warn('foreseen', { error })
    expect(last().error).toEqual({ name: 'Error', message: 'away', cause: { name: 'Error', message: 'refused' } })
    log.error('a fault', { error })
    expect(last().error).toMatchObject({ stack: expect.any(String), cause: { stack: expect.any(String) } })
    log.target('router.store').warn('foreseen', { error })
    expect(last().error).toMatchObject({ stack: expect.any(String) })
  })

  it('keeps line breaks and quotes of a message inside the one line', () => {
    const { log, lines } = capture()
    log.error('a\n"b"', { error: new Error('x\ny') })
    expect(lines[0]).not.toContain('\n')
  })
})

describe('redaction', () => {
  it('removes values by the name of their field, at any depth, but keeps counts', () => {
    const { log, last } = capture()
    log.info('x', { headers: { Authorization: 'abc', 'x-api-key': 'k' }, apiKey: 'v', max_tokens: 5, tokensIn: 3 })
    expect(last()).toMatchObject({
      headers: { Authorization: '[redacted]', 'x-api-key': '[redacted]' },
      apiKey: '[redacted]',
      max_tokens: 5,
      tokensIn: 3,
    })
  })

  it('removes keys of known shapes from messages and errors', () => {
    const { log, lines } = capture()
    log.error('used sk-ant-0123456789abcdef and Bearer abcdefghijkl', {
      error: new Error('bad key wb_live_0123456789', { cause: new Error('sk-proj-0123456789') }),
    })
    for (const secret of ['0123456789', 'abcdefghijkl']) expect(lines[0]).not.toContain(secret)
    expect(lines[0]).toContain('Bearer [redacted]')
  })

  it.each([true, false])('removes a secret wherever it stands, one of its own: %s', known => {
    fc.assert(
      fc.property(fc.string({ minLength: 8, maxLength: 30, unit: 'grapheme-ascii' }), secret => {
        fc.pre(!'[redacted]'.includes(secret) && secret.trim().length >= 8)
        const { log, lines } = capture()
        if (known) log.redact.register(secret)
        else log.redact.opened(secret)
        log.info(`before ${secret} after`, { note: [`x${secret}`], [secret]: 1, error: new Error(secret) })
        expect(lines[0]).not.toContain(JSON.stringify(secret).slice(1, -1))
      }),
    )
  })

  it('knows the secrets that were opened last, and its own for ever, whatever tenants bring', () => {
    const { log, lines } = capture()
    const shown = (secret: string) => {
      log.info(`it is ${secret}`)
      return lines.at(-1)!.includes(secret)
    }
    log.redact.register('own-secret')
    log.redact.opened('used-secret')
    log.redact.opened('left-secret')
    for (const [count, length] of [
      [5000, 30],
      [20, 1 << 20],
    ] as const) {
      for (let n = 0; n < count; n++) {
        log.redact.opened('used-secret')
        log.redact.opened(`${n}-`.padEnd(length, 'x'))
      }
      expect(['own-secret', 'used-secret', 'left-secret', `${count - 1}-`.padEnd(length, 'x')].map(shown)).toEqual([
        ...[false, false, true, false],
      ])
      expect(shown(`1-`.padEnd(length, 'x'))).toBe(true)
    }
  })
})
