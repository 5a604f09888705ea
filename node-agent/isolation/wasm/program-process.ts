// The process in which programs run: it may read its own program and start this one worker, and nothing else.

import { Worker } from 'node:worker_threads'
import type { FromProgram } from './messages.ts'

/** Long enough for many writes, and too short to be noticed. */
const JOIN_MS = 4

const [workerFile, heapMb] = process.argv.slice(2)
/** Counts what was sent to the worker. A WASI program that waits for an answer sleeps on it. */
const sent = new Int32Array(new SharedArrayBuffer(4))
const worker = new Worker(new URL(workerFile!), {
  resourceLimits: { stackSizeMb: 4, maxOldGenerationSizeMb: Number(heapMb) },
  env: {},
  workerData: sent,
})
process.on('message', message => {
  worker.postMessage(message)
  Atomics.add(sent, 0, 1)
  Atomics.notify(sent, 0)
})
process.on('disconnect', () => process.exit(0))
worker.on(
  'message',
  joinedOutput(
    message => process.send!(message),
    flush => setTimeout(flush, JOIN_MS),
  ),
)
worker.on('error', () => process.exit(4))
worker.on('exit', () => process.exit(4))

type Output = Extract<FromProgram, { type: 'output' }>

/** Messages in their order, with writes that come together as one: each message costs the node more than the bytes in it. */
function joinedOutput(send: (message: FromProgram) => void, later: (flush: () => void) => void) {
  let waiting: Output[] = []

  function flush(): void {
    const [first] = waiting
    if (first === undefined) return
    const bytes = waiting.length === 1 ? first.bytes : new Uint8Array(Buffer.concat(waiting.map(one => one.bytes)))
    waiting = []
    send({ ...first, bytes })
  }

  return (message: FromProgram): void => {
    const [first] = waiting
    const joins = message.type === 'output' && message.id === first?.id && message.stream === first.stream
    if (!joins) flush()
    if (message.type !== 'output') send(message)
    else if (waiting.push(message) === 1) later(flush)
  }
}
