import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { z } from 'zod'
import { readJson } from '../../../shared/json/read-json.ts'
import { IsolationError } from '../driver.ts'
import { type FirecrackerRequest, requestFault } from './requests.ts'

/** Nothing was said at a socket: its process does not listen yet, or not any more. */
export class NoAnswerError extends Error {
  override name = 'NoAnswerError'
}

const MAX_ANSWER = 65_536

const refusal = z.union([
  z.object({ fault_message: z.string() }).transform(({ fault_message }) => fault_message),
  // To a method or a body that it cannot read.
  z.object({ error: z.string() }).transform(({ error }) => error),
])

/** Sends one request over the API's socket. It answers 204, or 400 with a sentence. */
export function sendRequest(
  socketPath: string,
  { method, path, body }: FirecrackerRequest,
  deadlineMs: number,
): Promise<void> {
  const fault = requestFault({ method, path, body })
  if (fault !== undefined) throw new RangeError(`${method} ${path} does not fit the API: ${fault}`)
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body)
    const refuse = (reason: string) =>
      reject(new IsolationError('start_failed', `Firecracker refused ${method} ${path}: ${reason}`))
    const sent = request(
      {
        socketPath,
        // A kept connection is found by its path, under which another machine may answer by now.
        agent: false,
        method,
        path,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
      },
      answer => {
        let said = ''
        answer.on('data', chunk => {
          if (said.length < MAX_ANSWER) said += chunk
        })
        answer.once('error', error => reject(new NoAnswerError(error.message)))
        answer.on('end', () => {
          clearTimeout(late)
          if (answer.statusCode === 204) return resolve()
          refuse(reasonOf(said) ?? `status ${answer.statusCode}`)
        })
      },
    )
    const late = setTimeout(() => {
      refuse('no answer in time')
      sent.destroy()
    }, deadlineMs)
    sent.once('error', error => {
      clearTimeout(late)
      reject(new NoAnswerError(error.message))
    })
    sent.end(text)
  })
}

function reasonOf(said: string): string | undefined {
  try {
    return refusal.parse(readJson(said))
  } catch {
    return undefined
  }
}

/** A connection to a port inside, over the socket that stands for the machine's vsock: one line asks, one answers. */
export function connectVsock(socketPath: string, port: number, deadlineMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath)
    const fail = (error: Error) => {
      clearTimeout(late)
      socket.destroy()
      reject(error)
    }
    const silent = (reason: string) => fail(new NoAnswerError(`no agent behind the machine's vsock: ${reason}`))
    const late = setTimeout(() => silent('no answer in time'), deadlineMs)
    const closed = () => silent('it closed the connection')
    let said = ''
    socket.once('error', error => silent(error.message))
    socket.once('close', closed)
    const listen = () => {
      // Byte by byte up to the end of the line: what follows belongs to the channel.
      for (let byte: Buffer | null = socket.read(1); byte !== null; byte = socket.read(1)) {
        said += byte.toString('latin1')
        if (!said.endsWith('\n') && said.length < 64) continue
        clearTimeout(late)
        socket.off('readable', listen)
        socket.off('close', closed)
        if (/^OK \d+\n$/.test(said)) return resolve(socket)
        const other = `No agent behind the machine's vsock: it said ${JSON.stringify(said)}.`
        return fail(new IsolationError('start_failed', other))
      }
    }
    socket.on('readable', listen)
    socket.write(`CONNECT ${port}\n`)
  })
}
