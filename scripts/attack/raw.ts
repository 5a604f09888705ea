import { connect } from 'node:net'

/** Sends these bytes and gives what comes back until the other side is done, or nothing came for a while. */
export function raw(
  origin: string,
  bytes: string | Buffer | readonly (string | Buffer)[],
  quietMs = 1500,
): Promise<string> {
  const { port } = new URL(origin)
  const pieces = Array.isArray(bytes) ? bytes : [bytes]
  return new Promise(resolve => {
    let got = ''
    const socket = connect(Number(port), '127.0.0.1', () => {
      for (const piece of pieces) socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)
    })
    const over = () => {
      socket.destroy()
      resolve(got)
    }
    socket.on('data', piece => (got += piece.toString('latin1')))
    socket.on('error', over).on('close', over).setTimeout(quietMs, over)
  })
}

/** The statuses of the answers on one connection. */
export const statuses = (got: string): number[] =>
  [...got.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
