import { z } from 'zod'
import { readJson } from '../../../shared/json/read-json.ts'
import { joined, utf8 } from '../../../shared/sign/bytes.ts'
import { StepFailure } from '../failure.ts'
import { plainMessage } from '../journal/well-formed.ts'
import type { SandboxPipe } from '../sandbox/sandboxes.ts'

/** A picture of the tallest page that is taken, in base64. */
const MAX_MESSAGE_BYTES = 24 * 1024 * 1024

const CLOSE_MS = 5000

const values = z.record(z.string(), z.unknown())
export type Values = z.infer<typeof values>

const message = z.object({
  id: z.int().optional(),
  method: z.string().optional(),
  params: values.optional(),
  result: values.optional(),
  error: z.object({ message: z.string() }).optional(),
})

/** The browser would not do what it was asked: the page is another by now, or there is no such thing on it. */
export class Declined extends Error {
  override name = 'Declined'
}

export type Devtools = ReturnType<typeof devtools>

/**
 * The Chrome DevTools Protocol over a pipe: one JSON text after another, each ended by a zero byte. The browser stands in a sandbox
 * and what it says is not trusted: it is bounded, and whatever is no message of the protocol ends the talk.
 */
export function devtools(pipe: SandboxPipe, stop: AbortSignal) {
  let last = 0
  let gone: unknown
  const waiting = new Map<number, { resolve: (result: Values) => void; reject: (error: unknown) => void }>()
  const listeners: ((method: string, params: Values) => void)[] = []

  function end(error: unknown): void {
    if (gone !== undefined) return
    gone = error
    for (const { reject } of waiting.values()) reject(error)
    waiting.clear()
    pipe.kill()
  }

  function take(bytes: Uint8Array): void {
    const { id, method, params = {}, result = {}, error } = message.parse(readJson(new TextDecoder().decode(bytes)))
    if (method !== undefined) for (const listener of listeners) listener(method, params)
    const asked = id === undefined ? undefined : waiting.get(id)
    if (id === undefined || asked === undefined) return
    waiting.delete(id)
    if (error === undefined) asked.resolve(result)
    else asked.reject(new Declined(error.message.slice(0, 300)))
  }

  async function listen(): Promise<void> {
    let parts: Uint8Array[] = []
    let held = 0
    for await (const chunk of pipe.stdout) {
      let from = 0
      for (let at = chunk.indexOf(0); at >= 0; at = chunk.indexOf(0, from)) {
        take(joined([...parts, chunk.subarray(from, at)]))
        parts = []
        held = 0
        from = at + 1
      }
      parts.push(chunk.slice(from))
      held += chunk.length - from
      if (held > MAX_MESSAGE_BYTES) throw new Error(`one message has more than ${MAX_MESSAGE_BYTES} bytes`)
    }
  }

  const onStop = () => end(stop.reason)
  stop.addEventListener('abort', onStop, { once: true })
  if (stop.aborted) onStop()
  const heard = listen().catch((error: unknown) => {
    end(new StepFailure('sandbox_failed', `the browser said what no browser says: ${plainMessage(error)}`))
  })
  void Promise.all([pipe.ended, heard]).then(([why]) => {
    end(new StepFailure('sandbox_failed', `the browser ended: ${why}`))
  })

  return {
    /** Rejects with Declined where the browser says no, and with what ended the talk once it is over. */
    async send(method: string, params: Values = {}, sessionId?: string): Promise<Values> {
      if (gone !== undefined) throw gone
      const id = ++last
      const text = JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) })
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        pipe.write(utf8(`${text}\0`))
      })
    },
    onEvent(listener: (method: string, params: Values) => void): void {
      listeners.push(listener)
    },
    end(error: unknown): void {
      end(error)
    },
    async close(): Promise<void> {
      stop.removeEventListener('abort', onStop)
      end(new Error('the browser was closed'))
      // A guest that does not say so is not waited for: its sandbox is ended with its run.
      const gaveUp = Promise.withResolvers<void>()
      const timer = setTimeout(gaveUp.resolve, CLOSE_MS)
      await Promise.race([pipe.ended, gaveUp.promise])
      clearTimeout(timer)
    },
  }
}
