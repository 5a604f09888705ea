import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { callerAddress, readProxies } from './forwarded.ts'

const { proxies } = readProxies('127.0.0.1, 10.0.0.0/8, fd00::/8')

describe('the address of a caller', () => {
  it.each([
    ['no proxy is trusted', '9.9.9.9', '1.2.3.4', '9.9.9.9'],
    ['one trusted proxy', '127.0.0.1', '1.2.3.4', '1.2.3.4'],
    ['a trusted proxy in IPv6 clothes', '::ffff:127.0.0.1', '1.2.3.4', '1.2.3.4'],
    ['two trusted proxies in a row', '127.0.0.1', '1.2.3.4, 10.1.1.1', '1.2.3.4'],
    ['what a caller invented before it', '127.0.0.1', '6.6.6.6, 1.2.3.4', '1.2.3.4'],
    ['a proxy that says nothing', '127.0.0.1', null, '127.0.0.1'],
    ['a word that is no address', '127.0.0.1', 'unknown', '127.0.0.1'],
    ['an IPv6 caller behind an IPv6 proxy', 'fd00::1', '2001:db8::5', '2001:db8::5'],
  ])('with %s', (_, socket, forwarded, caller) => {
    expect(callerAddress(socket, forwarded, proxies)).toBe(caller)
  })

  it('is never chosen by a caller who is no trusted proxy', () => {
    const address = fc.tuple(fc.integer({ min: 11, max: 126 }), fc.nat(255), fc.nat(255), fc.nat(255))
    fc.assert(
      fc.property(address, fc.array(fc.string()), (socket, invented) => {
        expect(callerAddress(socket.join('.'), invented.join(','), proxies)).toBe(socket.join('.'))
        // And behind one, only what the proxy itself appended counts.
        expect(callerAddress('10.0.0.1', [...invented, socket.join('.')].join(','), proxies)).toBe(socket.join('.'))
      }),
    )
  })

  it('names the entry that is no network', () => {
    expect(readProxies('10.0.0.0/8, proxy.local').fault).toBe('proxy.local')
    expect(readProxies('10.0.0.0/33').fault).toBe('10.0.0.0/33')
  })
})
