import { expect, it } from 'vitest'
import { backgroundTasks } from './background-tasks.ts'

it('waits for the tasks that run, and forgets those that ended', async () => {
  const tasks = backgroundTasks()
  const held = Promise.withResolvers<void>()
  tasks.start(() => held.promise)
  expect(tasks.size).toBe(1)
  const settled = tasks.settled()
  held.resolve()
  await settled
  expect(tasks.size).toBe(0)
})

it('aborts each task when it is closed, waits for its end, and starts no further one', async () => {
  const tasks = backgroundTasks()
  const signals: AbortSignal[] = []
  const ended: string[] = []
  for (const name of ['a', 'b']) {
    tasks.start(async signal => {
      signals.push(signal)
      await new Promise(resolve => signal.addEventListener('abort', resolve))
      ended.push(name)
    })
  }
  expect(new Set(signals).size).toBe(2)
  await tasks.close()
  expect(ended).toEqual(['a', 'b'])
  tasks.start(async () => void ended.push('late'))
  expect(ended).toEqual(['a', 'b'])
})
