import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { IsolationError } from '../driver.ts'
import { type FirecrackerRequest, requestFault } from './requests.ts'

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
        method,
        path,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
        timeout: deadlineMs,
      },
      answer => {
        let said = ''
        answer.on('data', chunk => (said += chunk))
        answer.on('end', () => {
          if (answer.statusCode === 204) return resolve()
          refuse(/"fault_message":\s*"([^"]*)"/.exec(said)?.[1] ?? `status ${answer.statusCode}`)
        })
      },
    )
    sent.once('timeout', () => sent.destroy(new Error('no answer in time')))
    sent.once('error', error => refuse(error.message))
    sent.end(text)
  })
}

/** A connection to a port inside, over the socket that stands for the machine's vsock: one line asks, one answers. */
export function connectVsock(socketPath: string, port: number, deadlineMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath)
    const fail = (reason: string) => {
      socket.destroy()
      reject(new IsolationError('start_failed', `No agent behind the machine's vsock: ${reason}.`))
    }
    const late = setTimeout(() => fail('no answer in time'), deadlineMs)
    const closed = () => fail('it closed the connection')
    let said = ''
    socket.once('error', error => fail(error.message))
    socket.once('close', closed)
    const listen = () => {
      // Byte by byte up to the end of the line: what follows belongs to the channel.
      for (let byte: Buffer | null = socket.read(1); byte !== null; byte = socket.read(1)) {
        said += byte.toString('latin1')
        if (!said.endsWith('\n') && said.length < 64) continue
        clearTimeout(late)
        socket.off('readable', listen)
        socket.off('close', closed)
        if (!/^OK \d+\n$/.test(said)) return fail(`it said ${JSON.stringify(said)}`)
        return resolve(socket)
      }
    }
    socket.on('readable', listen)
    socket.write(`CONNECT ${port}\n`)
  })
}
