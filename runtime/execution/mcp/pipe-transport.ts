import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { readJson } from '../../../shared/json/read-json.ts'
import { utf8 } from '../../../shared/sign/bytes.ts'
import { StepFailure } from '../failure.ts'
import type { SandboxPipe } from '../sandbox/sandboxes.ts'
import { MAX_RESULT_BYTES } from '../step-output.ts'

/** One message with the most that a result may have, and room for what wraps it. */
const MOST_LINE = MAX_RESULT_BYTES + 64 * 1024

/** MCP over the standard streams of a program in a sandbox: one message for each line. */
export function pipeTransport(pipe: SandboxPipe): Transport {
  let closed = false

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
      if (line.length > MOST_LINE) {
        return over(new StepFailure('result_too_large', `the server wrote a line of more than ${MOST_LINE} characters`))
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
      pipe.write(utf8(`${JSON.stringify(message)}\n`))
    },
    async close() {
      over(undefined)
    },
  }
  return transport
}
