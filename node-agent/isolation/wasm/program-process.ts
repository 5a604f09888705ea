// The process in which programs run: it may read its own program and start this one worker, and nothing else.
import { Worker } from 'node:worker_threads'
import { joinedOutput } from './joined-output.ts'

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
