import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
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
