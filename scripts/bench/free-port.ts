import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

/** Below those that the system gives to outgoing connections, of which any may take a port before its listener does. */
const LEAST = 12_000
const MOST = 32_000

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LEAST + Math.floor(Math.random() * (MOST - LEAST))
    const server = createServer()
    const isFree = await new Promise(resolve => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

/** Resolves when something answers HTTP there, whatever it says. */
export async function untilAnswers(origin: string, withinMs = 30_000): Promise<void> {
  const until = performance.now() + withinMs
  while (performance.now() < until) {
    const answer = await fetch(`${origin}/healthz`, { signal: AbortSignal.timeout(2000) }).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer) return
    await wait(10)
  }
  throw new Error(`nothing answers at ${origin}`)
}
