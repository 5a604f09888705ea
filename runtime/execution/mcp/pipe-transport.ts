import type { Transport } from '@modelcontextprotocol/client'
import { readExactly } from '../../../shared/json/exact-numbers.ts'
import { readJson } from '../../../shared/json/read-json.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import { StepFailure } from '../failure.ts'
import type { SandboxPipe } from '../sandbox/sandboxes.ts'
import { MAX_MESSAGE_BYTES } from '../step-output.ts'
import { MOST_ANSWERS } from './connection.ts'

/** MCP over the standard streams of a program in a sandbox: one message for each line. */
export function pipeTransport(pipe: SandboxPipe): Transport {
  let closed = false
  /** Calls of tools that wait for their results. */
  const calls = new Set<unknown>()

  function over(error: Error | undefined): void {
    if (closed) return
    closed = true
    if (error) transport.onerror?.(error)
    pipe.kill()
    transport.onclose?.()
  }

  async function listen(): Promise<void> {
    const decoder = new TextDecoder()
    let line = ''
    for await (const chunk of pipe.stdout) {
      if (closed) return
      // What came before was looked at already: a line of megabytes comes in many pieces.
      const seen = line.length
      line += decoder.decode(chunk, { stream: true })
      for (let end = line.indexOf('\n', seen); end !== -1; end = line.indexOf('\n')) {
        take(line.slice(0, end))
        line = line.slice(end + 1)
      }
      if (line.length > MAX_MESSAGE_BYTES) {
        return over(
          new StepFailure('result_too_large', `the server wrote a line of more than ${MAX_MESSAGE_BYTES} characters`),
        )
      }
    }
    over(new StepFailure('mcp_failed', `the server ended: ${await pipe.ended}`, { transient: true }))
  }

  /** A line that is no message is a stray print statement; the answer that it stands in the place of will not come. */
  function take(line: string): void {
    if (line.trim() === '') return
    let message: unknown
    try {
      message = readJson(line)
      // The digits of a number that would be changed are passed on as a text.
      if (calls.delete(idOf(message))) message = readExactly(line, written => written)
    } catch {
      transport.onerror?.(new Error('the server wrote a line that is no message'))
      return
    }
    transport.onmessage?.(message as Parameters<NonNullable<Transport['onmessage']>>[0])
  }

  const transport: Transport = {
    async start() {
      void listen().catch((error: unknown) => over(error instanceof Error ? error : new Error('the pipe broke')))
    },
    async send(message) {
      if (closed) throw new StepFailure('mcp_failed', 'the server has ended', { transient: true })
      if (!('method' in message) && pipe.unread >= MOST_ANSWERS) return
      if ('method' in message && message.method === 'tools/call') calls.add(idOf(message))
      pipe.write(utf8(`${JSON.stringify(message)}\n`))
    },
    async close() {
      over(undefined)
    },
  }
  return transport
}

function idOf(message: unknown): unknown {
  return typeof message === 'object' && message !== null && 'id' in message ? message.id : undefined
}
