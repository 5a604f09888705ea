import { expect, it } from 'vitest'
import { readEnv } from '../shared/env/read-env.ts'
import { runtimeEnv } from './env.ts'

const peerUrl = (text: string) => readEnv(runtimeEnv, { PLATFORM_PEER_URL: text }).PLATFORM_PEER_URL

it('takes the address of a control plane, host and port alone', () => {
  expect(peerUrl('http://10.0.0.7:8080')).toBe('http://10.0.0.7:8080')
  expect(peerUrl('https://Plane-1.internal/')).toBe('https://plane-1.internal')
  expect(peerUrl('http://[fd00::7]:8080')).toBe('http://[fd00::7]:8080')
  expect(readEnv(runtimeEnv, {}).PLATFORM_PEER_URL).toBeUndefined()
  for (const bad of [
    '10.0.0.7:8080',
    'ftp://a',
    'http://a/path',
    'http://a?b',
    'http://a#b',
    'http://u:p@a',
    'http://',
  ]) {
    expect(() => peerUrl(bad), bad).toThrow('PLATFORM_PEER_URL: expected an http or https URL of host and port alone')
  }
})
