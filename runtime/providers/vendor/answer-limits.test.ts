import { expect, it, vi } from 'vitest'
import { eventually } from '../../../tests/eventually.ts'
import { watchSilence } from './answer-limits.ts'

it('lets what arrived while this process stood still be read before it gives up a call as silent', async () => {
  let now = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  const silence = watchSilence(new AbortController().signal, { firstByteMs: 20, idleMs: 20, contentMs: 60_000 }, 'p')
  // As after a SIGSTOP of five seconds: the timer is due before the connection is looked at.
  now = 5000
  await new Promise(resolve => setTimeout(resolve, 100))
  expect(silence.signal.aborted).toBe(false)
  silence.alive()
  // What is silent after it is given up all the same, and so is what never says a word.
  await eventually(() => expect(silence.signal.reason).toMatchObject({ message: 'p said nothing more for 20 ms' }))
  const never = watchSilence(new AbortController().signal, { firstByteMs: 20, idleMs: 20, contentMs: 60_000 }, 'p')
  now = 10_000
  await eventually(() => expect(never.signal.reason).toMatchObject({ message: 'p sent no answer in 20 ms' }))
  silence.end()
  never.end()
  clock.mockRestore()
})
