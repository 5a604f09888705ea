import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { requireBackend } from './require.ts'

/** iproute2's program. */
const PROGRAM = 'ip'

const ip = (...args: string[]) => promisify(execFile)(PROGRAM, args)

/** For the top of a test file: whether network namespaces can be made here, which takes root and iproute2. */
export function namespacesAvailable(): boolean {
  return requireBackend('namespaces', canMake(), 'apt-get install iproute2, and run as root')
}

function canMake(): boolean {
  const name = `wb-try-${process.pid}`
  try {
    execFileSync(PROGRAM, ['netns', 'add', name], { stdio: 'ignore' })
    execFileSync(PROGRAM, ['netns', 'del', name], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export interface Namespace {
  /** Of this side, as the namespace sees it. */
  egress: string
  /** What to put before a command so that it runs inside. */
  enter: string[]
  cut(): Promise<void>
  mend(): Promise<void>
  remove(): Promise<void>
}

/** A network of its own that reaches this machine over one cable and nothing else. */
export async function makeNamespace(): Promise<Namespace> {
  const id = process.pid % 10_000
  const name = `wb-node-${id}`
  const [near, remote] = [`wbn${id}`, `wbf${id}`]
  const net = `10.${200 + (id % 50)}.${(id >> 4) & 255}`
  const egress = `${net}.1`
  await ip('netns', 'add', name)
  await ip('link', 'add', near, 'type', 'veth', 'peer', 'name', remote, 'netns', name)
  await ip('addr', 'add', `${egress}/24`, 'dev', near)
  await ip('link', 'set', near, 'up')
  await ip('-n', name, 'addr', 'add', `${net}.2/24`, 'dev', remote)
  await ip('-n', name, 'link', 'set', remote, 'up')
  await ip('-n', name, 'link', 'set', 'lo', 'up')
  return {
    egress,
    enter: [PROGRAM, 'netns', 'exec', name],
    cut: async () => void (await ip('link', 'set', near, 'down')),
    mend: async () => void (await ip('link', 'set', near, 'up')),
    async remove() {
      await ip('link', 'del', near).catch(() => undefined)
      await ip('netns', 'del', name).catch(() => undefined)
    },
  }
}
