import { expect, it } from 'vitest'
import { readEnv } from '../shared/env/read-env.ts'
import { runtimeEnv } from './env.ts'

const planeUrl = (text: string) => readEnv(runtimeEnv, { PLATFORM_PLANE_URL: text }).PLATFORM_PLANE_URL

it('takes the address of a control plane, host and port alone', () => {
  expect(planeUrl('http://10.0.0.7:8080')).toBe('http://10.0.0.7:8080')
  expect(planeUrl('https://Plane-1.internal/')).toBe('https://plane-1.internal')
  expect(planeUrl('http://[fd00::7]:8080')).toBe('http://[fd00::7]:8080')
  expect(readEnv(runtimeEnv, {}).PLATFORM_PLANE_URL).toBeUndefined()
  for (const bad of [
    '10.0.0.7:8080',
    'ftp://a',
    'http://a/path',
    'http://a?b',
    'http://a#b',
    'http://u:p@a',
    'http://',
  ]) {
    expect(() => planeUrl(bad), bad).toThrow('PLATFORM_PLANE_URL: expected an http or https URL of host and port alone')
  }
})
