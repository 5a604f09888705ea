import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { refuseOldNode, tooOldMessage, VERSION } from './version.ts'

it('is the version of the package', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  expect(VERSION).toBe(version)
})

it('refuses what package.json does not take, and nothing else', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
  const oldest = /^>=(\d+)\.(\d+)$/.exec(engines.node)
  const [major, minor] = [Number(oldest?.[1]), Number(oldest?.[2])]
  expect(tooOldMessage(`${major}.${minor}.0`)).toBeUndefined()
  expect(tooOldMessage(`${major + 2}.0.0`)).toBeUndefined()
  expect(tooOldMessage(`${major}.${minor - 1}.9`)).toContain(`use Node ${major}.${minor} or newer`)
  expect(tooOldMessage(`${major - 2}.${minor + 2}.0`)).toMatch(/is too old/)
})

it('ends a command with a sentence and code 2', () => {
  const ended: unknown[] = []
  const stderr = { write: (text: string) => ended.push(text) }
  const under = (node: string) => refuseOldNode({ versions: { node }, stderr, exit: code => ended.push(code) })
  under('99.0.0')
  expect(ended).toEqual([])
  under('20.20.2')
  expect(ended).toEqual([expect.stringMatching(/^Node v20\.20\.2 is too old: use Node .* or newer\.\n$/), 2])
})
