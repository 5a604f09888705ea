import { type ClientRequest, request } from 'node:http'
import { type Duplex, duplexPair } from 'node:stream'
import { IsolationError } from '../driver.ts'
import type { ProgramCall } from './messages.ts'

/** The client makes its calls one after another; more than these are no calls of the client. */
export const MAX_CALLS = 16

/**
 * The calls of one program, made on its behalf to whatever answers on the port of its step protocol. No socket is opened: each
 * call is one request over a pair of streams.
 */
export function programCalls(
  ports: ReadonlyMap<number, (stream: Duplex) => void>,
  env: Readonly<Record<string, string>> = {},
  answer: (call: number, status: number, text: string) => void,
) {
  const open = new Set<ClientRequest>()
  return {
    make({ call, method, path, body }: ProgramCall): void {
      const refuse = (status: number, error: string) => answer(call, status, JSON.stringify({ error, code: 'refused' }))
      const { WAYBILL_STEP_URL: url, WAYBILL_STEP_TOKEN: token } = env
      const accept = url === undefined ? undefined : ports.get(Number(new URL(url).port))
      if (accept === undefined) {
        refuse(503, 'nothing answers calls here')
        return
      }
      if (open.size >= MAX_CALLS) throw new IsolationError('exec_failed', 'The program has too many calls open.')
      if (!/^\/[\w/.-]{1,300}$/.test(path) || !/^(?:GET|POST)$/.test(method)) {
        refuse(404, 'there is no such call')
        return
      }
      const [mine, theirs] = duplexPair()
      const sent = request({
        createConnection: () => mine,
        method,
        path,
        host: '127.0.0.1',
        headers: {
          authorization: `Bearer ${token}`,
          connection: 'close',
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      })
      open.add(sent)
      const end = (status: number, text: string) => {
        if (open.delete(sent)) answer(call, status, text)
      }
      const lost = () => end(503, JSON.stringify({ error: 'the run has ended', code: 'ended' }))
      theirs.on('error', () => undefined)
      sent.on('error', lost)
      sent.on('response', response => {
        const pieces: Buffer[] = []
        response.on('data', (piece: Buffer) => pieces.push(piece))
        response.on('error', lost)
        response.on('end', () => end(response.statusCode ?? 503, Buffer.concat(pieces).toString()))
      })
      accept(theirs)
      sent.end(body)
    },
    close(): void {
      const left = [...open]
      open.clear()
      for (const one of left) one.destroy()
    },
  }
}
