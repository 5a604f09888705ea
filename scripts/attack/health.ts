import { request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

/** A thread of its own that asks `/healthz` all the time, so that the work of the attacker is not taken for the service's. */
const { origin } = workerData as { origin: string }

function asked(): Promise<void> {
  return new Promise(resolve => {
    const call = request(`${origin}/healthz`, { agent: false, timeout: 60_000 }, answer => {
      answer.resume()
      answer.on('close', resolve)
    })
    call.on('error', () => resolve())
    call.on('timeout', () => call.destroy())
    call.end()
  })
}

for (;;) {
  const from = performance.timeOrigin + performance.now()
  await asked()
  parentPort?.postMessage([from, performance.timeOrigin + performance.now() - from])
  await wait(20)
}
