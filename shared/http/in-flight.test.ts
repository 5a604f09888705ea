import { expect, it } from 'vitest'
import { inFlight } from './in-flight.ts'

it('waits for the calls that were taken, refused ones and later ones too, and not beyond its time', async () => {
  const calls = inFlight()
  await calls.settled(60_000)
  const ended: string[] = []
  let answer = () => {}
  const first = calls.track(new Promise<void>(resolve => (answer = resolve)).then(() => ended.push('first')))
  const second = calls.track(first.then(() => calls.track(Promise.reject(new Error('refused')))))
  await calls.settled(1)
  expect(ended).toEqual([])
  answer()
  await calls.settled(60_000)
  expect(ended).toEqual(['first'])
  await expect(second).rejects.toThrow('refused')
})
