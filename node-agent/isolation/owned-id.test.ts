import { spawn } from 'node:child_process'
import { expect, it } from 'vitest'
import { isOrphan, newOwnedId, startTicks } from './owned-id.ts'

it('an id is an orphan once its process has ended, and only for its own backend', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' })
  await new Promise(resolve => child.once('spawn', resolve))
  const id = newOwnedId('runc', child.pid)
  expect(isOrphan(id, 'runc')).toBe(false)
  const ended = new Promise(resolve => child.once('exit', resolve))
  child.kill('SIGKILL')
  await ended
  expect(isOrphan(id, 'runc')).toBe(true)
  expect(isOrphan(id, 'qemu')).toBe(false)
})

it('an id whose number another process took over is an orphan too', () => {
  const id = newOwnedId('qemu')
  expect(isOrphan(id, 'qemu', () => startTicks(process.pid))).toBe(false)
  expect(isOrphan(id, 'qemu', () => '1')).toBe(true)
})

it('what is not ours is never an orphan', () => {
  for (const name of ['', 'system.slice', 'wb-runc', 'wb-runc-1-1-xyz', `wb-runc-0-0-${'a'.repeat(13)}`]) {
    expect(isOrphan(name, 'runc', () => undefined)).toBe(false)
  }
})
