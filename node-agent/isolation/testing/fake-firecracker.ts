import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createSocketServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { readJson } from '../../../shared/json/read-json.ts'
import { encodeFrame, FROM_GUEST, PROTOCOL, TO_GUEST } from '../../guest/frames.ts'
import { API_SOCKET, requestFault } from '../firecracker/requests.ts'

export interface FakeFirecrackerOptions {
  /** Ends the process, as the real one does after a load that failed, or for the machine's own reasons. */
  exit?: (words: string) => void
  /** As before version 1.16: the reset of a snapshot's vsock comes once something was sent on the next connection. */
  lateReset?: boolean
  /** The machine's kernel gives up as soon as it has started. */
  panics?: boolean
}

interface Body {
  action_type?: string
  state?: string
  uds_path?: string
  resume_vm?: boolean
  snapshot_path?: string
  mem_file_path?: string
  mem_size_mib?: number
  mem_backend?: { backend_path: string }
}

/** How much of the memory of a machine holds something. */
export const FAKE_DATA_MB = 8

/** Written into the state of a snapshot; any other is refused. */
const STATE_HEAD = 'state of a fake machine: '

/**
 * Answers like Firecracker's API in the root of a jail and runs no machine: it holds requests to our schema of the API and
 * to the order and the side effects that were seen of the real one. Behind its vsock a fake of the agent answers.
 */
export async function fakeFirecracker(root: string, options: FakeFirecrackerOptions = {}) {
  const { exit = () => undefined, lateReset = false, panics = false } = options
  let state: 'unconfigured' | 'configuring' | 'running' | 'paused' = 'unconfigured'
  let vsock: { path: string; server: Server } | undefined
  let memory: GuestMemory = { commands: 0 }
  let memoryMb = 0
  let resetsNext = false
  const connections = new Set<Socket>()
  const seen = new Set<string>()
  const said: string[] = ['fake: no virtual machine runs behind this socket']
  const has = (one: string) => seen.has(one)

  function refusal(method: string, path: string, body: Body): string | undefined {
    const fault = requestFault({ method, path, body })
    if (fault !== undefined) return fault
    const started = state === 'running' || state === 'paused'
    if (path === '/snapshot/load') return loadFault(body)
    if (path === '/snapshot/create') return state === 'paused' ? undefined : 'the machine is not paused'
    if (path === '/vm') return started ? undefined : 'no machine runs'
    if (path === '/actions') {
      if (body.action_type !== 'InstanceStart') return state === 'running' ? undefined : 'no machine runs'
      if (started) return 'the machine has started already'
      return has('PUT /boot-source') ? undefined : 'no kernel was given'
    }
    return started ? `${method} ${path} comes before the start` : undefined
  }

  function loadFault({ snapshot_path: path }: Body): string | undefined {
    if (state !== 'unconfigured') return 'Load snapshot error: a snapshot loads only into a fresh process'
    const text = existsSync(join(root, path!)) ? readFileSync(join(root, path!), 'latin1') : ''
    if (!text.startsWith(STATE_HEAD))
      return 'Load snapshot error: Failed to load snapshot state from file: bitcode error'
    const { vsock: kept } = readJson(text.slice(STATE_HEAD.length)) as { vsock: string }
    return existsSync(join(root, kept)) ? 'Load snapshot error: Address in use (os error 98)' : undefined
  }

  async function openVsock(path: string): Promise<void> {
    const server = createSocketServer(socket => {
      if (state !== 'running' || panics) return socket.destroy()
      connections.add(socket)
      socket.on('error', () => undefined)
      socket.once('close', () => connections.delete(socket))
      socket.once('data', () => {
        socket.write('OK 1073741824\n')
        if (resetsNext) socket.once('data', () => socket.destroy())
        else fakeGuest(socket, memory)
        resetsNext = false
      })
      return undefined
    })
    await new Promise<void>(resolve => server.listen(join(root, path), resolve))
    vsock = { path, server }
  }

  function write(body: Body): void {
    for (const socket of connections) socket.destroy()
    writeFileSync(join(root, body.snapshot_path!), STATE_HEAD + JSON.stringify({ vsock: vsock?.path, memoryMb }))
    const all = Buffer.alloc(memoryMb * 1024 * 1024)
    all.fill(1, 0, FAKE_DATA_MB * 1024 * 1024)
    all.write(JSON.stringify(memory), all.length / 2)
    writeFileSync(join(root, body.mem_file_path!), all)
    resetsNext = lateReset
  }

  async function load(body: Body): Promise<void> {
    const kept = readFileSync(join(root, body.snapshot_path!), 'latin1').slice(STATE_HEAD.length)
    const { vsock: path, memoryMb: size } = readJson(kept) as { vsock: string; memoryMb: number }
    // The memory of the machine is this file for as long as it runs.
    const all = readFileSync(openSync(join(root, body.mem_backend!.backend_path), 'r'))
    const middle = all.subarray(all.length / 2)
    memory = readJson(middle.toString('latin1', 0, middle.indexOf(0))) as GuestMemory
    memoryMb = size
    resetsNext = lateReset
    await openVsock(path)
    state = body.resume_vm ? 'running' : 'paused'
  }

  async function apply(method: string, path: string, body: Body): Promise<void> {
    seen.add(`${method} ${path}`)
    if (path === '/vm') state = body.state === 'Paused' ? 'paused' : 'running'
    else if (path === '/snapshot/load') await load(body)
    else if (path === '/snapshot/create') write(body)
    else if (path === '/actions') {
      state = 'running'
      if (panics) setTimeout(exit, 50, 'Kernel panic - not syncing: no init')
    } else state = 'configuring'
    if (path === '/machine-config') memoryMb = body.mem_size_mib!
    if (path === '/vsock') await openVsock(body.uds_path!)
  }

  function refuse(answer: ServerResponse, member: 'fault_message' | 'error', reason: string): void {
    answer.writeHead(400, { 'content-type': 'application/json' })
    answer.end(JSON.stringify({ [member]: reason }))
  }

  const server = createServer(async (request, answer) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const [method, path] = [request.method!, request.url!]
    if (method !== 'PUT' && method !== 'PATCH') return refuse(answer, 'error', `Invalid request method: ${method}`)
    const body = readJson(text) as Body
    const fault = refusal(method, path, body)
    said.push(`${fault === undefined ? 204 : 400} ${method} ${path}`)
    if (fault !== undefined) {
      refuse(answer, 'fault_message', fault)
      if (path === '/snapshot/load') answer.once('close', () => exit('Configuring the machine from a snapshot failed'))
      return
    }
    await apply(method, path, body)
    answer.writeHead(204)
    answer.end()
  })
  await new Promise<void>(resolve => server.listen(join(root, API_SOCKET), resolve))
  return {
    said,
    async close() {
      for (const socket of connections) socket.destroy()
      vsock?.server.close()
      server.closeAllConnections()
      await new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}

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
