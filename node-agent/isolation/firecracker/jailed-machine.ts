import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { chown, type FileHandle, open, rm, rmdir } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import { IsolationError } from '../driver.ts'
import { HOST_IDS } from '../oci/bundle.ts'
import {
  addToGroup,
  type CgroupLimits,
  createGroup,
  groupMembers,
  killGroupMembers,
  limitProcessors,
  readBack,
  removeGroup,
  requireCgroups,
} from '../oci/cgroups.ts'
import { connectVsock, NoAnswerError, sendRequest } from './api-client.ts'
import { AGENT_PORT, API_SOCKET, type FirecrackerRequest, JAIL, jailerArgs } from './requests.ts'

const JAIL_ID = HOST_IDS - 2
const RETRY_MS = 5
/** How long its end may take to be heard of, once its socket was closed. */
const END_SEEN_MS = 500
const REMOVAL_MS = 5000

/** Names a file without opening it; Node has no name for this flag of Linux. */
const O_PATH = 0x200000

/** Something was put in its place; trying again is of no use. */
export class NoSocketError extends IsolationError {
  constructor(message: string) {
    super('start_failed', message)
  }
}

/**
 * A socket in the jail, under a path that is short however long that of the jail is: a socket takes 107 bytes. The machine's
 * process may put a link in its place that leads out of the jail; such a one is not followed.
 */
async function withSocket<T>(jail: FileHandle, name: string, use: (path: string) => Promise<T>): Promise<T> {
  const flags = O_PATH | constants.O_NOFOLLOW
  const socket = await open(`/proc/self/fd/${jail.fd}${name}`, flags).catch((cause: Error) => {
    throw new NoAnswerError(cause.message, { cause })
  })
  try {
    if (!(await socket.stat()).isSocket()) throw new NoSocketError(`What stands at ${name} in the jail is no socket.`)
    return await use(`/proc/self/fd/${socket.fd}`)
  } finally {
    await socket.close()
  }
}

export interface JailedMachineOptions {
  id: string
  /** The jailer, and Firecracker under its own name: of a link the jailer would take the target's. */
  jailer: string
  firecracker: string
  /** In memory; the jail is a folder in it. */
  base: string
  limits: CgroupLimits
  /** Of one attempt to reach the agent. */
  attemptMs: number
}

/** A program that writes files into the jail. */
export interface JailFiller {
  command: string
  args: readonly string[]
  files: readonly string[]
  input?: Uint8Array
  /** Other machines read them too, so they stay root's. */
  isShared?: boolean
}

const failure = (reason: string) => new IsolationError('start_failed', `Firecracker started no machine: ${reason}`)

/** Holds what is in force for each process against its limits; one that has ended has none. */
async function confirmed(
  pids: readonly number[],
  { id, limits }: { id: string; limits: CgroupLimits },
  hasEnded: () => boolean,
): Promise<void> {
  for (const pid of pids) {
    const found = await readBack(pid, id, limits)
    if (typeof found === 'string' && !hasEnded())
      throw new IsolationError('limits_not_in_force', `Nothing was run under firecracker: ${found}.`)
  }
}

/** Again and again while nothing answers, for as long as it runs; an answer is an answer, whatever it says. */
async function retried<T>(
  attempt: () => Promise<T>,
  until: number,
  ended: Promise<string>,
  lastWords: () => string | undefined,
): Promise<T> {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error
      const words = lastWords()
      if (words !== undefined) throw failure(words)
      if (performance.now() > until) throw failure(`no answer within its time: ${error.message}`)
      await Promise.race([wait(RETRY_MS), ended])
    }
  }
}

/** Files for the jail, written by a process of the machine's group, which pays for their memory. */
async function fillJail(
  { id, root, limits }: { id: string; root: string; limits: CgroupLimits },
  { command, args, files, input, isShared = false }: JailFiller,
  until: number,
): Promise<void> {
  const filler = gatedProcess(command, args)
  const late = setTimeout(() => filler.child.kill('SIGKILL'), until - performance.now())
  try {
    if (filler.pid !== undefined) await addToGroup(id, filler.pid)
    // Nothing foreign runs yet, and its share of a processor may be small.
    await limitProcessors(id, 'unlimited')
    filler.begin(input)
    const { code, words } = await filler.ended
    if (code !== 0) throw failure(words)
    await limitProcessors(id, limits.cpuQuota)
    if (!isShared) for (const file of files) await chown(join(root, file), JAIL_ID, JAIL_ID)
  } finally {
    clearTimeout(late)
    filler.child.kill('SIGKILL')
  }
}

export type JailedMachine = Awaited<ReturnType<typeof jailedMachine>>

/** A jail and the process that will run in it, which stands in its control group and waits for `begin`. */
export async function jailedMachine(options: JailedMachineOptions) {
  const { id, jailer, firecracker, base, limits, attemptMs } = options
  const jail = join(base, basename(firecracker), id)
  const root = join(jail, 'root')
  await makeFolder(root, 0o711)
  const args = jailerArgs({ id, firecracker, base, uid: JAIL_ID, cgroupVersion: await requireCgroups() })
  const process = gatedProcess(jailer, args)
  /** Its sockets are opened by way of this folder. */
  let folder: FileHandle | undefined
  let words: string | undefined
  const ended = process.ended.then(end => {
    words = end.words
    return end.words
  })

  let removal: Promise<void> | undefined
  const remove = () => (removal ??= removeAll())

  async function removeAll(): Promise<void> {
    process.child.kill('SIGKILL')
    await removeGroup(id)
    await Promise.race([ended, wait(REMOVAL_MS)])
    await folder?.close()
    folder = undefined
    await rm(jail, { recursive: true, force: true })
    await rmdir(dirname(jail)).catch(() => undefined)
  }

  const confirmLimits = (pids: readonly number[]) => confirmed(pids, { id, limits }, () => words !== undefined)

  const patiently = <T>(attempt: () => Promise<T>, until: number) => retried(attempt, until, ended, () => words)

  function inJail(): FileHandle {
    if (folder !== undefined) return folder
    throw failure('it was removed')
  }

  const ask = (request: FirecrackerRequest, deadlineMs: number) =>
    withSocket(inJail(), API_SOCKET, path => sendRequest(path, request, deadlineMs))

  const machine = {
    id,
    root,
    /** Settles with its last words once nothing of it runs. */
    ended,
    hasEnded: () => words !== undefined,

    fill: (filler: JailFiller, until: number) => fillJail({ id, root, limits }, filler, until),

    /** Lets the jailer begin, and takes it through the first requests; the first of them waits for it to listen. */
    async start(requests: readonly FirecrackerRequest[], until: number): Promise<void> {
      await confirmLimits([process.pid!])
      process.begin()
      const [first, ...others] = requests
      const left = () => Math.max(1, until - performance.now())
      await patiently(() => ask(first!, left()), until)
      await machine.send(others, left())
      const pids = await groupMembers(id)
      if (pids.length === 0) {
        await Promise.race([ended, wait(END_SEEN_MS)])
        if (words !== undefined) throw failure(words)
        throw new IsolationError('limits_not_in_force', 'Nothing was run under firecracker: it left its control group.')
      }
      await confirmLimits(pids)
    },

    /** Requests to a process that listens: one that does not answer has ended, and says why. */
    async send(requests: readonly FirecrackerRequest[], deadlineMs: number): Promise<void> {
      try {
        for (const request of requests) await ask(request, deadlineMs)
      } catch (error) {
        if (!(error instanceof NoAnswerError)) throw error
        await Promise.race([ended, wait(END_SEEN_MS)])
        throw failure(words ?? error.message)
      }
    },

    /** A connection to the agent, once its kernel runs and it listens. */
    connect(until: number): Promise<Socket> {
      const attempt = () => withSocket(inJail(), JAIL.vsock, path => connectVsock(path, AGENT_PORT, attemptMs))
      return patiently(attempt, until)
    },

    kill: () => killGroupMembers(id),
    remove,
  }
  try {
    folder = await open(root, 'r')
    if (process.pid === undefined) throw failure(await ended)
    await createGroup(id, limits, process.pid)
    await confirmLimits([process.pid])
    return machine
  } catch (error) {
    await remove()
    throw error
  }
}

/** Reads one line before it becomes the program; the rest of the input is the program's. */
const GATE = 'read -r begin && exec "$0" "$@"'

interface GatedProcess {
  child: ChildProcess
  /** Absent where it could not be started. */
  pid: number | undefined
  /** Lets the program begin, with this as its input. */
  begin(input?: Uint8Array): void
  /** Settles with its last words once it and what it started hold its output no more. */
  ended: Promise<{ code: number | undefined; words: string }>
}

/**
 * Starts a program that does nothing before `begin`, so that limits are in force, and were read back, when it does. It
 * gets nothing of the environment of this process, in which secrets stand.
 */
function gatedProcess(command: string, args: readonly string[]): GatedProcess {
  const child = spawn('/bin/sh', ['-c', GATE, command, ...args], {
    detached: true,
    env: { PATH: process.env.PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.on('data', (chunk: Buffer) => (said[name] = (said[name] + chunk.toString('latin1')).slice(-4000)))
  }
  // It may end before it has read everything.
  child.stdin!.on('error', () => undefined)
  const ended = new Promise<{ code: number | undefined; words: string }>(resolve => {
    child.once('error', error => resolve({ code: undefined, words: error.message }))
    child.once('close', (code, signal) => {
      const end = signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`
      resolve({ code: code ?? undefined, words: lastLine(said.stderr) || lastLine(said.stdout) || end })
    })
  })
  return {
    child,
    pid: child.pid,
    begin: (input = new Uint8Array()) => void child.stdin!.end(Buffer.concat([Buffer.from('\n'), input])),
    ended,
  }
}

/** In characters that a log shows as they are. */
const lastLine = (text: string) =>
  text
    .replaceAll(/[^\n -~]/g, '')
    .trim()
    .split('\n')
    .at(-1)!
    .slice(0, 500)
