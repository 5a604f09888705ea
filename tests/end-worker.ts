import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'

/** Imported before a program: SIGUSR2 ends each thread that it starts by a fault of the thread's own, between two statements. */
class EndedWorker extends threads.Worker {
  constructor(...args: ConstructorParameters<typeof threads.Worker>) {
    super(...args)
    process.on('SIGUSR2', () => this.postMessage('nothing that it understands'))
  }
}
threads.Worker = EndedWorker
syncBuiltinESMExports()
