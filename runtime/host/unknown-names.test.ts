import { expect, it } from 'vitest'
import { unknownNames } from './examine.ts'

it('names each variable that nothing reads, with the one that was meant', () => {
  expect(
    unknownNames({
      PLATFORM_RETENTION_DAY: '30',
      PLATFORM_SOMETHING_ELSE_ALTOGETHER: '1',
      PATH: '/bin',
      PLATFORM_BIND: 'x:1',
      PLATFORM_PROVIDER_OPENAI_API_KEY: 'k',
      PLATFORM_OAUTH_GITHUB_CLIENT_ID: 'id',
      PLATFORM_API_KEY: 'k',
      PLATFORM_WARM_POOL: '1',
      PLATFORM_CONTROL_URL: 'x',
      PLATFORM_EMPTY: '',
    }),
  ).toEqual([
    'PLATFORM_RETENTION_DAY is set, and nothing reads it: did you mean PLATFORM_RETENTION_DAYS?',
    'PLATFORM_SOMETHING_ELSE_ALTOGETHER is set, and nothing reads it',
  ])
})

it('says that ALL_PROXY is not read, where no variable that is read names a proxy', () => {
  const ALL_PROXY = 'socks5://me:secret@proxy:1080'
  expect(unknownNames({ ALL_PROXY })).toEqual([
    'ALL_PROXY is set, and nothing reads it: calls go straight. Name an HTTP proxy in HTTPS_PROXY and HTTP_PROXY; SOCKS is not supported',
  ])
  expect(unknownNames({ ALL_PROXY, https_proxy: 'http://proxy:3128' })).toEqual([])
})
