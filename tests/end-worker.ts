import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'

/** Imported before a program: SIGUSR2 ends each thread that it starts, as a fault would. */
class EndedWorker extends threads.Worker {
  constructor(...args: ConstructorParameters<typeof threads.Worker>) {
    super(...args)
    process.on('SIGUSR2', () => void this.terminate())
  }
}
threads.Worker = EndedWorker
syncBuiltinESMExports()
