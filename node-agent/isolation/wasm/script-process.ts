// The process in which scripts run: it may read its own program and start this one worker, and nothing else.
import { Worker } from 'node:worker_threads'

const [workerFile, heapMb] = process.argv.slice(2)
const worker = new Worker(new URL(workerFile!), {
  resourceLimits: { stackSizeMb: 4, maxOldGenerationSizeMb: Number(heapMb) },
  env: {},
})
process.on('message', job => worker.postMessage(job))
process.on('disconnect', () => process.exit(0))
worker.on('message', message => process.send!(message))
worker.on('error', () => process.exit(4))
worker.on('exit', () => process.exit(4))
