import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AddressKind, addressKind } from './address-kind.ts'
import { readAllowEntry } from './allow-list.ts'
import { inNetwork, readIp, readNetwork } from './ip-address.ts'
import { outboundRule } from './outbound-rule.ts'

const allow = (...entries: string[]) => outboundRule(entries.map(entry => readAllowEntry(entry)!))
const url = (text: string) => new URL(text)

const octet = fc.nat(255)
const v4 = fc.tuple(octet, octet, octet, octet).map(parts => parts.join('.'))
const groups = fc.array(fc.nat(0xffff), { minLength: 8, maxLength: 8 })
const hex = (all: readonly number[]) => all.map(group => group.toString(16)).join(':')

describe('the kind of an address', () => {
  const KNOWN: Record<string, AddressKind> = {
    '8.8.8.8': 'public',
    '1.1.1.1': 'public',
    '172.32.0.1': 'public',
    '100.128.0.1': 'public',
    '10.0.0.1': 'private',
    '172.16.0.1': 'private',
    '172.31.255.255': 'private',
    '192.168.1.1': 'private',
    '127.0.0.1': 'loopback',
    '127.255.255.254': 'loopback',
    '0.0.0.0': 'unspecified',
    '0.1.2.3': 'unspecified',
    '169.254.1.1': 'link_local',
    '169.254.169.254': 'metadata',
    '169.254.170.2': 'metadata',
    '100.64.0.1': 'shared',
    '100.100.100.200': 'metadata',
    '168.63.129.16': 'metadata',
    '192.0.2.1': 'reserved',
    '198.18.0.1': 'reserved',
    '198.51.100.7': 'reserved',
    '203.0.113.9': 'reserved',
    '224.0.0.1': 'multicast',
    '239.1.1.1': 'multicast',
    '240.0.0.1': 'reserved',
    '255.255.255.255': 'broadcast',
    '::': 'unspecified',
    '::1': 'loopback',
    'fe80::1': 'link_local',
    'fe80::1%eth0': 'link_local',
    'fc00::1': 'unique_local',
    'fdff::1': 'unique_local',
    'fd00:ec2::254': 'metadata',
    'ff02::1': 'multicast',
    '2001:4860:4860::8888': 'public',
    '2606:4700::1111': 'public',
    '2001:db8::1': 'reserved',
    '2001::1': 'reserved',
    '3fff::1': 'reserved',
    '4000::1': 'reserved',
    'fec0::1': 'private',
    '::ffff:127.0.0.1': 'loopback',
    '::ffff:8.8.8.8': 'public',
    '::ffff:a9fe:a9fe': 'metadata',
    '::127.0.0.1': 'loopback',
    '64:ff9b::10.0.0.1': 'private',
    '64:ff9b:1::1': 'private',
    '2002:7f00:1::': 'loopback',
    '2002:808:808::1': 'public',
    '::ffff:0:169.254.169.254': 'metadata',
  }
  it.each(Object.entries(KNOWN))('calls %s %s', (address, kind) => {
    expect(addressKind(address)).toBe(kind)
  })

  it('is the same for every IPv6 spelling of an IPv4 address', () => {
    fc.assert(
      fc.property(v4, address => {
        const [a, b, c, d] = address.split('.').map(Number)
        const tail = hex([a! * 256 + b!, c! * 256 + d!])
        const spellings = [`::ffff:${address}`, `::ffff:${tail}`, `0:0:0:0:0:ffff:${tail}`, `64:ff9b::${tail}`]
        for (const spelling of [...spellings, `2002:${tail}::1`]) {
          expect([spelling, addressKind(spelling)]).toEqual([spelling, addressKind(address)])
        }
      }),
    )
  })

  it('is the same for an address as a URL spells it, whatever was written there', () => {
    fc.assert(
      fc.property(fc.tuple(octet, octet, octet, octet), fc.constantFrom(8, 10, 16), (parts, radix) => {
        const prefix = radix === 16 ? '0x' : radix === 8 ? '0' : ''
        const dotted = parts.map(part => prefix + part.toString(radix)).join('.')
        const whole = prefix + parts.reduce((sum, part) => sum * 256 + part, 0).toString(radix)
        for (const spelled of [dotted, whole, `${dotted}.`]) {
          expect(addressKind(url(`http://${spelled}/`).hostname)).toBe(addressKind(parts.join('.')))
        }
      }),
    )
  })

  it('is private only inside the private networks and public only outside of all that are listed', () => {
    const inside = (address: string, ...cidrs: string[]) =>
      cidrs.some(cidr => {
        const { network, bits } = readNetwork(cidr)!
        return inNetwork(readIp(address)!, network, bits)
      })
    fc.assert(
      fc.property(v4, address => {
        const isPrivate = inside(address, '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16')
        expect(addressKind(address) === 'private').toBe(isPrivate)
        if (inside(address, '0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '100.64.0.0/10', '224.0.0.0/3')) {
          expect(addressKind(address)).not.toBe('public')
        }
      }),
      { numRuns: 500 },
    )
  })

  it('reads an IPv6 address in full and with its zeros left out as the same bytes', () => {
    fc.assert(
      fc.property(groups, fc.nat(7), fc.nat(7), (all, from, to) => {
        const [start, end] = [Math.min(from, to), Math.max(from, to) + 1]
        const zeroed = all.map((group, at) => (at >= start && at < end ? 0 : group))
        const short = `${hex(zeroed.slice(0, start))}::${hex(zeroed.slice(end))}`
        expect(readIp(short)).toEqual(readIp(hex(zeroed)))
      }),
    )
  })

  it('is unknown for what is no address', () => {
    for (const text of ['', 'a.b', '1.2.3', '1.2.3.4.5', '256.1.1.1', '01.2.3.4', '::1::', '1:2:3', ':::', 'g::1']) {
      expect([text, addressKind(text)]).toEqual([text, undefined])
    }
  })
})

describe('the allow list', () => {
  it('reads names, wildcards, addresses and networks, with and without a port', () => {
    for (const entry of ['db', 'a.example.com', '*.example.com:8443', '10.0.0.0/8', '127.0.0.1:8080', '::1']) {
      expect([entry, readAllowEntry(entry) === undefined]).toEqual([entry, false])
    }
    for (const entry of ['[::1]:8080', 'fc00::/7', '[fc00::]/7', '10.0.0.0/8:443', ' Localhost:11434 ']) {
      expect([entry, readAllowEntry(entry) === undefined]).toEqual([entry, false])
    }
  })

  it('refuses what would open everything or nothing', () => {
    for (const entry of [
      '*',
      '',
      '*.',
      'a b',
      '10.0.0.0/33',
      'host:0',
      'host:99999',
      '1.2.3',
      'http://a',
      '-a',
      'a*b',
    ]) {
      expect([entry, readAllowEntry(entry)]).toEqual([entry, undefined])
    }
  })
})

describe('the outbound rule', () => {
  it('lets public addresses out and nothing else', () => {
    fc.assert(
      fc.property(fc.oneof(v4, groups.map(hex)), address => {
        const problem = outboundRule().address({ host: 'example.com', port: 443 }, address)
        expect(problem === undefined).toBe(addressKind(address) === 'public')
      }),
    )
  })

  it('refuses a literal address in a URL, in any spelling, and names the variable that opens it', () => {
    for (const text of [
      'http://127.0.0.1',
      'http://0x7f.1',
      'http://2130706433',
      'http://[::1]',
      'http://[::ffff:7f00:1]',
    ]) {
      expect(outboundRule().url(url(text))).toMatch(/loopback address; .*PLATFORM_OUTBOUND_ALLOW/)
    }
    expect(outboundRule().url(url('ftp://example.com'))).toContain('ftp:')
    expect(outboundRule().url(url('https://u:p@example.com'))).toContain('user or password')
    expect(outboundRule().url(url('https://example.com'))).toBeUndefined()
  })

  it('opens what an entry names and keeps the rest closed', () => {
    expect(allow('127.0.0.1:8080').url(url('http://127.0.0.1:8080'))).toBeUndefined()
    expect(allow('127.0.0.1:8080').url(url('http://127.0.0.1:8081'))).toBeDefined()
    expect(allow('10.0.0.0/8').url(url('http://[::ffff:10.1.2.3]'))).toBeUndefined()
    expect(allow('10.0.0.0/8').url(url('http://192.168.0.1'))).toBeDefined()
    const target = { host: 'db.corp.example', port: 443 }
    expect(allow('*.corp.example').address(target, '10.1.2.3')).toBeUndefined()
    expect(allow('*.db.corp.example').address(target, '10.1.2.3')).toBeDefined()
  })

  it('opens link-local and metadata addresses only to an entry that says the address', () => {
    const target = { host: 'innocent.example', port: 80 }
    for (const address of ['169.254.169.254', '169.254.3.4', 'fe80::1', '168.63.129.16', '::ffff:169.254.169.254']) {
      expect(allow('innocent.example').address(target, address)).toContain('says the address itself')
    }
    expect(allow('169.254.169.254').address(target, '169.254.169.254')).toBeUndefined()
  })

  it('never opens an unspecified, multicast or broadcast address', () => {
    const target = { host: 'x', port: 80 }
    for (const address of ['0.0.0.0', '::', '224.0.0.1', '255.255.255.255', 'ff02::1']) {
      expect(allow('x', '0.0.0.0/0', '::/0').address(target, address)).toContain('never called')
    }
  })

  it('refuses names of private networks where a host cannot see their addresses', () => {
    for (const host of ['localhost', 'a.localhost', 'db', 'metadata.google.internal', 'printer.local', 'x.home.arpa']) {
      expect([host, outboundRule().name(url(`http://${host}`))]).toEqual([host, expect.stringContaining(host)])
    }
    expect(allow('db:5432').name(url('http://db:5432'))).toBeUndefined()
    expect(outboundRule().name(url('http://example.com'))).toBeUndefined()
  })
})
