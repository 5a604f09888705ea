import { connect, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../../../tests/eventually.ts'
import { type Acceptor, acceptor } from './acceptor.ts'

let door: Acceptor
const clients: Socket[] = []

afterEach(() => {
  door.close()
  for (const client of clients.splice(0)) client.destroy()
})

function client(): Socket {
  const made = connect(Number(new URL(door.origin).port), '127.0.0.1')
  made.on('error', () => undefined)
  clients.push(made)
  return made
}

/** A process that notes what it is sent. */
function taker() {
  const sent: [number, Socket][] = []
  return { sent, ...door.join((connection, socket) => void sent.push([connection, socket])) }
}

it('hands connections to processes in turn, and those that came before the first of them', async () => {
  door = await acceptor({ host: '127.0.0.1', port: 0 })
  client()
  client()
  await eventually(() => expect(clients.every(one => one.readyState === 'open')).toBe(true))
  const one = taker()
  await eventually(() => expect(one.sent).toHaveLength(2))
  const two = taker()
  client()
  client()
  await eventually(() => expect([one.sent.length, two.sent.length]).toEqual([3, 1]))
})

it('keeps a connection open until it is confirmed, and gives it to another process where the first one ends', async () => {
  door = await acceptor({ host: '127.0.0.1', port: 0 })
  const one = taker()
  client()
  await eventually(() => expect(one.sent).toHaveLength(1))
  const two = taker()
  one.ended()
  expect(two.sent.map(([, socket]) => socket)).toEqual([one.sent[0]![1]])
  const [number, socket] = two.sent[0]!
  expect(socket.destroyed).toBe(false)
  two.took(number)
  expect(socket.destroyed).toBe(true)
  two.ended()
})

it('gives nothing more to a process that leaves, and takes nothing back of what it has', async () => {
  door = await acceptor({ host: '127.0.0.1', port: 0 })
  const one = taker()
  const two = taker()
  one.leave()
  client()
  client()
  await eventually(() => expect(two.sent).toHaveLength(2))
  expect(one.sent).toEqual([])
})

it('closes what no process has taken', async () => {
  door = await acceptor({ host: '127.0.0.1', port: 0 })
  const one = client()
  const closed = new Promise(resolve => one.once('close', resolve))
  one.resume()
  await eventually(() => expect(one.readyState).toBe('open'))
  // The connection is accepted a moment after it is made.
  await new Promise(resolve => setTimeout(resolve, 100))
  door.close()
  await closed
})
