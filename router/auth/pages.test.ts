import { describe, expect, it } from 'vitest'
import { readEnv } from '../../shared/env/read-env.ts'
import { sha256 } from '../../shared/sign/sha256.ts'
import { routerEnv } from '../env.ts'
import type { Access } from './access.ts'
import { parseKeys } from './keys.ts'
import { pageRefusal, type Sender } from './pages.ts'

const ALLOWED = ['https://router.example.com', 'http://[fd00::7]:9000', 'app://notes.example']

const ask = (sender: Partial<Sender>, access: Partial<Access> = {}) =>
  pageRefusal({ keys: [], reach: 'loopback', insecure: false, metricsOpen: false, ...access })({
    host: '127.0.0.1:8080',
    origin: undefined,
    site: undefined,
    ...sender,
  })

const PROGRAMS: Partial<Sender>[] = [
  {},
  { host: 'localhost:8080' },
  { host: 'LocalHost' },
  { host: '[::1]:8080' },
  { host: '127.1.2.3:80' },
  { host: undefined },
  { site: 'none' },
  { site: 'same-origin', origin: 'http://127.0.0.1:8080' },
  { host: 'localhost:8080', origin: 'http://localhost:8080' },
]

const PAGES: Partial<Sender>[] = [
  { origin: 'https://evil.example' },
  { origin: 'https://evil.example', site: 'cross-site' },
  { origin: 'http://127.0.0.1:3000', site: 'same-site' },
  { origin: 'null' },
  { origin: '' },
  { site: 'cross-site' },
  { origin: 'http://127.0.0.1:8080', site: 'cross-site' },
  { origin: 'app://notes.example' },
  { host: undefined, origin: 'https://evil.example' },
]

const OTHER_NAMES: Partial<Sender>[] = [
  { host: 'evil.example:8080' },
  { host: 'evil.example:8080', origin: 'http://evil.example:8080' },
  { host: 'evil.example:8080', origin: 'http://evil.example:8080', site: 'same-origin' },
  { host: '127.0.0.1.evil.example' },
  { host: 'localhost.evil.example:8080' },
  { host: 'notes.example' },
  { host: '[fd00::7]:9000' },
  { host: '' },
]

describe('a router on loopback that asks for no key', () => {
  it.each(PROGRAMS)('answers a program or its own page: %j', sender => {
    expect(ask(sender)).toBeUndefined()
  })

  it.each(PAGES)('refuses a page of another site, and says what lets it in: %j', sender => {
    expect(ask(sender)).toMatch(/^a page of .* ROUTER_ALLOWED_ORIGINS, or call from a program/)
  })

  it.each(OTHER_NAMES)('refuses a name that was rebound to this machine: %j', sender => {
    expect(ask(sender)).toMatch(/^calls to this router go to 127\.0\.0\.1 or localhost, .* ROUTER_ALLOWED_ORIGINS/)
  })

  it('answers the pages that are allowed, and under their names', () => {
    const allowedOrigins = ALLOWED
    for (const origin of ALLOWED) expect(ask({ origin, site: 'cross-site' }, { allowedOrigins })).toBeUndefined()
    for (const host of ['router.example.com', 'Router.example.com:8443', '[fd00::7]:9000']) {
      expect(ask({ host }, { allowedOrigins }), host).toBeUndefined()
      expect(ask({ host, origin: 'https://router.example.com' }, { allowedOrigins }), host).toBeUndefined()
      expect(ask({ host, origin: 'https://evil.example' }, { allowedOrigins }), host).toBeDefined()
    }
    // The name of an app is not the name of a host: another party may own that.
    expect(ask({ host: 'notes.example' }, { allowedOrigins })).toBeDefined()
    expect(ask({ host: 'evil.example', origin: ALLOWED[0] }, { allowedOrigins })).toBeDefined()
    expect(ask({ origin: 'https://router.example.com.evil.example' }, { allowedOrigins })).toBeDefined()
  })
})

describe('elsewhere', () => {
  it('a network address without keys is called by any name, and by no page of another site', () => {
    const reach = 'network'
    for (const sender of [...PROGRAMS, ...OTHER_NAMES])
      expect(ask(sender, { reach }), JSON.stringify(sender)).toBe(undefined)
    for (const sender of PAGES) expect(ask(sender, { reach }), JSON.stringify(sender)).toBeDefined()
    const own = { host: 'router.example.com', origin: 'https://router.example.com' }
    expect(ask(own, { reach })).toBeUndefined()
  })

  it('a key is more than a page of another site has, and a program lets in whom it likes', () => {
    const keys = parseKeys('acme:acme-secret-of-24-characters', sha256)
    for (const sender of [...PROGRAMS, ...PAGES, ...OTHER_NAMES]) {
      for (const reach of ['loopback', 'network'] as const) expect(ask(sender, { reach, keys })).toBeUndefined()
      expect(ask(sender, { reach: 'program' })).toBeUndefined()
    }
  })
})

describe('ROUTER_ALLOWED_ORIGINS', () => {
  const read = (text: string) => readEnv(routerEnv, { ROUTER_ALLOWED_ORIGINS: text }).ROUTER_ALLOWED_ORIGINS

  it('is a list of whole origins, also of apps and extensions', () => {
    expect(
      read(' https://App.example.com/, http://localhost:3000 ,,app://Notes.example,chrome-extension://abcd'),
    ).toEqual(['https://app.example.com', 'http://localhost:3000', 'app://notes.example', 'chrome-extension://abcd'])
    expect(read('file://,file:///')).toEqual(['file://', 'file://'])
    expect(readEnv(routerEnv, {}).ROUTER_ALLOWED_ORIGINS).toEqual([])
  })

  it.each(['*', 'null', 'app.example.com', 'https://*.example.com', 'https://a.example/path', 'app://*', 'app://a/b'])(
    'takes no %s',
    text => {
      expect(() => read(text)).toThrow(`"${text}" is none`)
    },
  )
})
