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

it('refuses times that a timer would turn into none at all', () => {
  const read = (name: string, text: string) => readEnv(runtimeEnv, { [name]: text })
  for (const name of ['PLATFORM_RECOVERY_INTERVAL', 'PLATFORM_LEASE_TTL', 'PLATFORM_SSE_HEARTBEAT']) {
    expect(() => read(name, '0'), name).toThrow(`${name}: expected a duration above 0`)
    expect(() => read(name, '0.4ms'), name).toThrow(`${name}: expected a duration above 0`)
    expect(() => read(name, '577h'), name).toThrow(`${name}: expected at most 576h`)
  }
  for (const name of ['PLATFORM_DRAIN_TIMEOUT', 'PLATFORM_TURN_TIMEOUT', 'PLATFORM_MODEL_CONTENT_TIMEOUT']) {
    expect(() => read(name, '577h'), name).toThrow(`${name}: expected at most 576h`)
    expect(read(name, '0'), name).toMatchObject({ [name]: 0 })
  }
  expect(read('PLATFORM_NODE_LOST_AFTER', '9999h').PLATFORM_NODE_LOST_AFTER).toBe(9999 * 3_600_000)
})
