import { expect, test } from 'vitest'
import { growth, type Held, heldBy } from './held.ts'
import { inside } from './inside.ts'

test('a process of our own holds files, threads and memory', () => {
  const { rssMb, files, threads } = heldBy(process.pid)
  expect(rssMb).toBeGreaterThan(10)
  expect(files).toBeGreaterThan(2)
  expect(threads).toBeGreaterThan(1)
})

test('timers are told from what else keeps a process alive', () => {
  expect(inside(['Timeout', 'TCPSocketWrap', 'Immediate', 'Timeout'])).toEqual({ timers: 3, handles: 1 })
})

test('what grows is told from what only warms up', () => {
  const samples = Array.from(
    { length: 40 },
    (_, at): Held => ({
      rssMb: at < 10 ? at * 10 : 100,
      heapMb: 50,
      buffersMb: 5,
      sockets: 20 + at,
      files: 7,
      threads: 11,
      timers: 4,
      handles: at % 2,
    }),
  )
  const shares = Object.fromEntries(growth(samples).map(({ of, share }) => [of, share]))
  expect(shares).toMatchObject({ rssMb: 0, files: 0, threads: 0 })
  expect(shares.sockets).toBeGreaterThan(0.5)
})
