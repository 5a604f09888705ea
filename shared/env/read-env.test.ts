import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { logFilter, readEnv } from './read-env.ts'

const schema = z.object({
  PORT: z.string().regex(/^\d+$/, 'expected a number').default('80'),
  API_KEY: z.string().min(8, 'expected at least 8 characters').optional(),
  LEVEL: logFilter.optional(),
})

describe('readEnv', () => {
  it('reads what is set, takes an empty value as unset, and ignores the rest', () => {
    expect(readEnv(schema, { PORT: '', API_KEY: 'long enough', HOME: '/' })).toEqual({
      PORT: '80',
      API_KEY: 'long enough',
    })
  })

  it('repeats no password of an address, and no header', () => {
    const places = z.object({ URL: z.url({ protocol: /^ftp$/ }).optional(), SENT_HEADERS: z.literal('x').optional() })
    const given = { URL: 'https://me:pass-word@host/x', SENT_HEADERS: 'Bearer pass-word' }
    expect(() => readEnv(places, given)).toThrow(/got "https:\/\/…@host\/x"/)
    expect(() => readEnv(places, given)).not.toThrow(/pass-word/)
  })

  it('lists every variable that does not read, with what was expected and what came, never a secret', () => {
    expect(() => readEnv(schema, { PORT: 'x', API_KEY: 'short', LEVEL: 'loud' })).toThrow(
      'PORT: expected a number, got "x"\nAPI_KEY: expected at least 8 characters\nLEVEL: expected error, warn, info, debug, trace, off, or a list target=level, got "loud"',
    )
  })
})
