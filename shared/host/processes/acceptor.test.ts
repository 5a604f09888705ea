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

it('gives what comes to other processes while one confirms nothing, and to it again once it does', async () => {
  let nowMs = 0
  door = await acceptor({ host: '127.0.0.1', port: 0 }, () => nowMs)
  const [stopped, other] = [taker(), taker()]
  const connected = async (count: number) => {
    for (let made = 0; made < count; made++) client()
    await eventually(() => expect(stopped.sent.length + other.sent.length).toBe(clients.length))
    for (const [number] of other.sent) other.took(number)
  }
  await connected(2)
  expect([stopped.sent.length, other.sent.length]).toEqual([1, 1])
  nowMs = 1001
  await connected(4)
  expect([stopped.sent.length, other.sent.length]).toEqual([1, 5])
  stopped.took(stopped.sent[0]![0])
  await connected(2)
  expect([stopped.sent.length, other.sent.length]).toEqual([2, 6])
  // Where none confirms anything, they go on in turn.
  nowMs = 5000
  other.leave()
  await connected(2)
  expect(stopped.sent.length).toBe(4)
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
