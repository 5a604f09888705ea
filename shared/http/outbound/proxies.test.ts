import { describe, expect, it } from 'vitest'
import { namesProxy, networkVars } from '../../env/read-env.ts'
import { outboundProxies } from './proxies.ts'

const ADDRESS = 'http://proxy.corp:3128'
const by = (vars: Record<string, string>, url: string) => outboundProxies(vars).ofUrl(new URL(url))?.address

describe('which proxy a call goes by', () => {
  it.each<[string, Record<string, string>, string, string | undefined]>([
    ['https by its own variable', { HTTPS_PROXY: ADDRESS }, 'https://a.example/', ADDRESS],
    ['http not by that of https', { HTTPS_PROXY: ADDRESS }, 'http://a.example/', undefined],
    ['https not by that of http', { HTTP_PROXY: ADDRESS }, 'https://a.example/', undefined],
    ['the small spelling first', { https_proxy: ADDRESS, HTTPS_PROXY: 'http://b:1' }, 'https://a.example/', ADDRESS],
    ['an empty one as none', { https_proxy: '', HTTPS_PROXY: ADDRESS }, 'https://a.example/', ADDRESS],
    ['an address without a scheme', { http_proxy: 'proxy.corp:3128' }, 'http://a.example/', ADDRESS],
    ['a proxy that is itself encrypted', { https_proxy: 'https://p.corp' }, 'https://a.example/', 'https://p.corp'],
  ])('%s', (_, vars, url, expected) => expect(by(vars, url)).toBe(expected))

  it.each([
    'https://localhost:8443/',
    'https://db.localhost/',
    'https://127.0.0.1/',
    'https://127.8.8.8/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://169.254.169.254/',
    'https://169.254.170.2/',
    'https://[fd00:ec2::254]/',
    'https://metadata.google.internal/',
    'https://[fe80::1]/',
    'https://0.0.0.0/',
  ])('%s goes by no proxy, whatever the variables say', url =>
    expect(by({ HTTPS_PROXY: ADDRESS }, url)).toBeUndefined(),
  )

  it.each<[string, string, boolean]>([
    ['*', 'https://a.example/', true],
    ['a.example', 'https://a.example/', true],
    ['a.example', 'https://A.EXAMPLE./', true],
    ['a.example', 'https://b.a.example/', true],
    ['a.example', 'https://ba.example/', false],
    ['.a.example', 'https://b.a.example/', true],
    ['.a.example', 'https://a.example/', true],
    ['*.a.example', 'https://b.a.example/', true],
    ['other, a.example', 'https://a.example/', true],
    ['other a.example', 'https://a.example/', true],
    ['a.example:443', 'https://a.example/', true],
    ['a.example:8443', 'https://a.example/', false],
    ['10.0.0.0/8', 'https://10.9.8.7/', true],
    ['10.0.0.0/8', 'https://11.9.8.7/', false],
    ['10.0.0.0/8', 'https://[::ffff:10.1.1.1]/', true],
    ['10.1.1.1', 'https://10.1.1.1:9/', true],
    ['10.1.1.1:8', 'https://10.1.1.1:9/', false],
    ['fd00::/8', 'https://[fd12::1]/', true],
    ['fd12::1', 'https://[fd12::1]/', true],
    ['[fd12::1]:9', 'https://[fd12::1]:9/', true],
    ['[fd12::1]:9', 'https://[fd12::1]:8/', false],
    ['10.0.0.0/8', 'https://10.example/', false],
    ['.', 'https://a.example/', false],
    [',, ,', 'https://a.example/', false],
  ])('NO_PROXY=%s and %s', (no_proxy, url, straight) =>
    expect(by({ HTTPS_PROXY: ADDRESS, no_proxy }, url) === undefined).toBe(straight),
  )

  it('keeps the name and password apart from the address', () => {
    const vars = { HTTPS_PROXY: 'http://me:p%40ss%3Aword%C3%A9@proxy.corp:3128/' }
    const { all, secrets } = outboundProxies(vars)
    expect(all).toMatchObject([{ variable: 'HTTPS_PROXY', address: ADDRESS, host: 'proxy.corp', port: 3128 }])
    const basic = Buffer.from('me:p@ss:wordé').toString('base64')
    expect(all[0]?.authorization).toBe(`Basic ${basic}`)
    expect(secrets).toEqual([basic, 'p%40ss%3Aword%C3%A9', 'p@ss:wordé'])
  })

  it.each(['socks5://me:secret@proxy:1080', 'http://me:secret@', 'http://me:secret@host:99999', 'me:secret@ho st'])(
    'refuses %s without saying what stands in it',
    https_proxy => {
      const made = () => outboundProxies({ https_proxy })
      expect(made).toThrow(/^https_proxy: expected the address of an HTTP proxy/)
      expect(made).not.toThrow(/secret/)
    },
  )

  it('is what a thread hears of the environment, and nothing else', () =>
    expect(networkVars({ HTTPS_PROXY: ADDRESS, no_proxy: '*', PLATFORM_MASTER_KEY: 'k', HTTP_PROXY_X: 'x' })).toEqual({
      HTTPS_PROXY: ADDRESS,
      no_proxy: '*',
    }))

  it('is asked only where a variable names one', () => {
    expect(namesProxy({ NO_PROXY: '*', HTTPS_PROXY: '' })).toBe(false)
    for (const name of ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'])
      expect(namesProxy({ [name]: ADDRESS })).toBe(true)
  })
})
