import { expect, it } from 'vitest'
import type { ChangedFiles } from './messages.ts'
import { memoryWorkspace } from './workspace.ts'

it('takes no path that is longer than 1024 characters', () => {
  const workspace = memoryWorkspace(100)
  workspace.write('x'.repeat(1024), new Uint8Array())
  expect(() => workspace.write('x'.repeat(1025), new Uint8Array())).toThrow('longer than 1024')
})

it('holds so many files and bytes, and has room again when some are gone', () => {
  const workspace = memoryWorkspace(100)
  workspace.put(Array.from({ length: 10_000 }, (_, index): ChangedFiles[number] => [`f${index}`, new Uint8Array()]))
  expect(() => workspace.write('one-more', new Uint8Array())).toThrow('full')
  workspace.put([
    ['new', new Uint8Array(100)],
    ['f0', null],
  ])
  expect(() => workspace.write('f1', new Uint8Array(1))).toThrow('full')
  workspace.write('new', new Uint8Array(99))
  workspace.write('f1', new Uint8Array(1))
  expect(workspace.list('.')).toHaveLength(10_000)
})
