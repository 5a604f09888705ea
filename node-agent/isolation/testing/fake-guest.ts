import type { Socket } from 'node:net'
import { encodeFrame, FROM_GUEST, PROTOCOL, TO_GUEST } from '../../guest/frames.ts'

/** What of a guest a snapshot keeps. */
export interface GuestMemory {
  commands: number
}

/** Answers on a connection as the guest's agent does, and runs nothing: a command says how many there have been. */
export function fakeGuest(socket: Socket, memory: GuestMemory): void {
  let kept = Buffer.alloc(0)
  const send = (type: number, id: number, payload?: Uint8Array) => socket.write(encodeFrame(type, id, payload))
  socket.on('data', chunk => {
    kept = Buffer.concat([kept, chunk])
    while (kept.length >= 9 && kept.length >= 9 + kept.readUInt32BE(0)) {
      const length = kept.readUInt32BE(0)
      const [type, id, payload] = [kept[4]!, kept.readUInt32BE(5), kept.subarray(9, 9 + length)]
      kept = kept.subarray(9 + length)
      if (type === TO_GUEST.hello) {
        const ready = Buffer.concat([Buffer.from([PROTOCOL]), Buffer.from('6.1.0-fake\0'), payload.subarray(56)])
        send(FROM_GUEST.ready, 0, ready)
      } else if (type === TO_GUEST.ping) {
        send(FROM_GUEST.pong, id)
      } else if (type === TO_GUEST.exec) {
        memory.commands++
        send(FROM_GUEST.stdout, id, Buffer.from(`command ${memory.commands}\n`))
        send(FROM_GUEST.exit, id, new Uint8Array(3))
      }
    }
  })
}
