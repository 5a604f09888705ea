import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { utf8 } from '../../shared/sign/bytes.ts'
import { sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import { keyring, parseKeys, secretsOf } from './keys.ts'

const SECRET = 'a-secret-of-24-characters'

describe('ROUTER_KEYS', () => {
  it('reads plain keys, admin keys and hashed keys, by commas and by lines', () => {
    const text = `acme:${SECRET}, ops!:${SECRET}2\n# a note\n\nlab:sha256:${sha256Hex('third').toUpperCase()}`
    const keys = parseKeys(text, sha256)
    expect(keys.map(({ tenantId, admin }) => [tenantId, admin])).toEqual([
      ['acme', false],
      ['ops', true],
      ['lab', false],
    ])
    const find = keyring(keys, sha256)
    expect([SECRET, `${SECRET}2`, 'third', 'fourth', ''].map(secret => find(secret)?.tenantId)).toEqual([
      'acme',
      'ops',
      'lab',
      undefined,
      undefined,
    ])
  })

  it.each([
    ['acme', 'entry 1: expected tenant:secret'],
    [`acme:${SECRET},two words:${SECRET}2`, 'entry 2: expected tenant:secret'],
    ['acme:short-secret', 'the secret of acme is shorter than 24 characters'],
    ['acme:sha256:abc', 'expected 64 hex digits'],
    [`a:${SECRET},b:${SECRET}`, 'entries 1 and 2 have the same secret'],
    [' , ', 'at least one'],
  ])('refuses %j and never repeats the secret', (text, message) => {
    let said = ''
    try {
      parseKeys(text, sha256)
    } catch (error) {
      said = String(error)
    }
    expect(said).toContain(message)
    expect(said).not.toContain(SECRET)
    expect(said).not.toContain('short-secret')
  })

  it('finds every key by its own secret and by no other', () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9:_-]{24,40}$/)
    fc.assert(
      fc.property(fc.uniqueArray(secret, { minLength: 2, maxLength: 8 }), ([other = '', ...secrets]) => {
        fc.pre(secrets.every(one => !one.startsWith('sha256:')))
        const text = secrets.map((one, at) => `t${at}:${one}`).join(',')
        const find = keyring(parseKeys(text, sha256), sha256)
        secrets.forEach((one, at) => {
          expect(find(one)).toMatchObject({ tenantId: `t${at}`, digest: sha256(utf8(one)) })
        })
        expect(find(other)).toBeUndefined()
        expect(secretsOf(text)).toEqual(secrets)
      }),
    )
  })
})
