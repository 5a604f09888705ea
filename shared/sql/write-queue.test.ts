import { expect, it } from 'vitest'
import { dbFault } from './db-fault.ts'
import { writeQueue } from './write-queue.ts'

it('lets one write be under way at a time, in the order of their coming, also after one that failed', async () => {
  const inTurn = writeQueue()
  const seen: string[] = []
  let underWay = 0
  const write = (name: string) =>
    inTurn(async () => {
      expect(++underWay).toBe(1)
      await Promise.resolve()
      seen.push(name)
      underWay--
      if (name === 'b') throw new Error('refused')
      return name
    })
  const told = await Promise.allSettled(['a', 'b', 'c', 'd'].map(write))
  expect(seen).toEqual(['a', 'b', 'c', 'd'])
  expect(told.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  expect(await write('e')).toBe('e')
})

it('does not let a write wait for ever behind one that hangs, and says that it may be tried again', async () => {
  const inTurn = writeQueue({ longestWaitMs: 5 })
  let end = () => {}
  const hanging = inTurn(() => new Promise<void>(resolve => (end = resolve)))
  const error: unknown = await inTurn(async () => 'never').catch((error: unknown) => error)
  expect([String(error), dbFault(error)]).toEqual([expect.stringContaining('did not take this write'), 'busy'])
  end()
  await hanging
  expect(await inTurn(async () => 'now')).toBe('now')
})
