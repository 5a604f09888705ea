import { access, mkdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { StepFailure } from '../runtime/execution/failure.ts'
import type {
  Command,
  CommandEnd,
  Offered,
  RunSandbox,
  Sandboxes,
  SandboxFor,
  SandboxPipe,
} from '../runtime/execution/sandbox/sandboxes.ts'
import type { ResolveHost } from '../shared/host/resolve-host.ts'
import { type OutboundRule, outboundRule } from '../shared/http/outbound/outbound-rule.ts'
import type { Log } from '../shared/log/log.ts'
import { lastWords, textOf, told } from './command-output.ts'
import { egressProxy } from './egress/egress-proxy.ts'
import type { NodeEnv } from './env.ts'
import { type GuestImage, NO_IMAGE, openImage } from './guest/image-manifest.ts'
import { byteQueue } from './isolation/byte-queue.ts'
import { type Driver, IsolationError, type Probe, type Sandbox } from './isolation/driver.ts'
import { driversOf, reapAll } from './isolation/drivers.ts'
import { httpOver } from './isolation/guest-http.ts'
import { sessionMachines } from './session-machines.ts'
import { readWorkspace, writeWorkspace } from './workspace-file.ts'

export interface NodeSandboxesOptions {
  env: NodeEnv
  /** Where workspaces of runs are kept between their sandboxes. */
  workspaces: string
  log: Log
  /** Which addresses of the network may be called at all; absent: public ones. */
  rule?: OutboundRule
  /** What this process has tried already; those backends are not tried again. */
  probes?: readonly Probe[]
  resolve?: ResolveHost
}

const PROBE_MS = 20_000
const START_MS = 30_000
const KEEP_MS = 60_000
/** Processes of a run; gVisor's host tasks count for more and its driver makes room for them. */
const PIDS = 128
/** A model is not helped by more, and has to pay for it. */
const OUTPUT_BYTES = 128 * 1024
const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/bin'
/** On the loopback of a sandbox that may call somebody. */
const EGRESS_PORT = 7702
/** Of a program that is spoken with for as long as its run lasts. */
const PIPE_BYTES = 1024 * 1024 * 1024
/** Longest that a timer of Node waits. */
const LONGEST_MS = 2 ** 31 - 1

/** The isolation backends of this machine as the engine uses them: one sandbox for each claim of a run. */
export function nodeSandboxes({
  env,
  workspaces,
  log,
  rule = outboundRule(),
  resolve,
  probes,
}: NodeSandboxesOptions): Sandboxes & { close(): Promise<void> } {
  let opened: Promise<{ drivers: readonly Driver[]; image: GuestImage | undefined }> | undefined
  const tried = new Map<string, Promise<Offered | undefined>>()
  const passed: Offered[] = []
  const open = new Set<RunSandbox>()
  const machines = sessionMachines({ log, warm: env.PLATFORM_WARM_POOL })

  async function begin() {
    const image = await openImage(env.NODE_IMAGE_DIR)
    const drivers = driversOf(env, image ?? NO_IMAGE)
    const reaped = await reapAll(drivers)
    if (reaped.length > 0) log.info('sandboxes of an earlier process were removed', { reaped: reaped.length })
    return { drivers, image }
  }
  const machine = () => {
    opened ??= begin()
    return opened
  }

  async function probe(backend: string): Promise<Offered | undefined> {
    const { drivers, image } = await machine()
    const driver = drivers.find(one => one.backend === backend)
    // A guest without an image has nothing to run.
    if (driver === undefined || image === undefined || backend === 'wasm') return undefined
    const known = probes?.find(one => one.backend === backend)
    const { available, accel, reasons } = known ?? (await driver.probe(PROBE_MS))
    if (!known) log.info('an isolation backend was tried', { backend, available, reasons: reasons.join(' ') })
    if (!available) return undefined
    const programs = new Set([...image.programs, ...(await toolsFor(driver, env.NODE_SANDBOX_TOOLS))])
    const offer = { backend: driver.backend, programs, ...(accel && { accel }) }
    passed.push(offer)
    return offer
  }

  const tarOf = (id: string) => join(workspaces, `${id}.tar`)

  async function driverOf({ backend }: Offered): Promise<Driver> {
    const { drivers } = await machine()
    const driver = drivers.find(one => one.backend === backend)
    if (driver === undefined) throw new StepFailure('sandbox_failed', `this node has no ${backend}`)
    return driver
  }

  return {
    async offered(backends) {
      const found: Offered[] = []
      // One after another: each probe starts something.
      for (const backend of backends) {
        let known = tried.get(backend)
        if (known === undefined) {
          known = probe(backend).catch((error: unknown) => {
            log.warn('an isolation backend could not be tried', { backend, error })
            return undefined
          })
          tried.set(backend, known)
        }
        const offer = await known
        if (offer) found.push(offer)
      }
      return found
    },

    known: () => passed,

    async open(run) {
      const driver = await driverOf(run.offered)
      const limits = limitsOf(run.limits)
      const { session } = run
      const tar = tarOf(session?.id ?? run.runId)
      const { sandbox, fresh, done } = await asStep(
        session
          ? machines.use(session.id, { driver, limits, idleMs: session.idleMs })
          : driver.start(limits, START_MS).then(sandbox => ({ sandbox, fresh: true, done: () => void sandbox.stop() })),
      )
      const close = async () => {
        open.delete(opened)
        if (session) done()
        else await sandbox.stop()
      }
      const opened = runSandbox(sandbox, run, { tar, close, pip: pipVariables(env) })
      open.add(opened)
      void sandbox.ended.then(() => open.delete(opened))
      try {
        // Answered for this turn: another may have had other rules.
        if (run.egress.rules.length > 0) {
          const proxy = egressProxy({ egress: run.egress, rule, ...(resolve && { resolve }) })
          await asStep(sandbox.serve(EGRESS_PORT, proxy))
        }
        if (fresh) await begun(sandbox, run, tar)
      } catch (error) {
        await opened.close()
        throw error
      }
      return opened
    },

    sessions: {
      async acquire({ id, offered, limits, idleMs }) {
        return machines.acquire(id, { driver: await driverOf(offered), limits: limitsOf(limits), idleMs })
      },
      of: machines.of,
      async release(id) {
        await machines.release(id)
        await rm(tarOf(id), { force: true })
      },
    },

    async forget(runId) {
      await rm(tarOf(runId), { force: true })
    },

    async close() {
      await Promise.all([...open].map(sandbox => sandbox.close()))
      await machines.close()
      const { drivers } = opened ? await opened : { drivers: [] }
      await Promise.all(drivers.map(driver => driver.close()))
    },
  }
}

/** Interpreters in the operator's folder, which containers see; a machine has only what its first file system holds. */
async function toolsFor({ backend }: Driver, tools: string | undefined): Promise<string[]> {
  if (tools === undefined || (backend !== 'runc' && backend !== 'gvisor')) return []
  const found = await Promise.all(
    ['python3', 'node'].map(name =>
      access(join(tools, 'bin', name)).then(
        () => [name],
        () => [],
      ),
    ),
  )
  return found.flat()
}

/** Only an operator's own registry may be one without encryption. */
function pipVariables({ NODE_PIP_INDEX: index }: NodeEnv): Record<string, string> {
  if (index === undefined) return {}
  const { protocol, hostname } = new URL(index)
  return { PIP_INDEX_URL: index, ...(protocol === 'http:' && { PIP_TRUSTED_HOST: hostname }) }
}

const limitsOf = ({ memoryMb, vcpus, diskMb }: SandboxFor['limits']) => ({ memoryMb, cpus: vcpus, pids: PIDS, diskMb })

/** Both spellings are in use. Without rules nothing listens, and there is no way out. */
function proxyVariables({ rules }: SandboxFor['egress']): Record<string, string> {
  if (rules.length === 0) return {}
  const proxy = `http://127.0.0.1:${EGRESS_PORT}`
  const own = 'localhost,127.0.0.1'
  return { http_proxy: proxy, HTTP_PROXY: proxy, https_proxy: proxy, HTTPS_PROXY: proxy, no_proxy: own, NO_PROXY: own }
}

/** The workspace as it was kept, else the files of the manifest. */
async function begun(sandbox: Sandbox, run: SandboxFor, tar: string): Promise<void> {
  if (await stat(tar).catch(() => undefined)) {
    const unpacked = await sandbox.exec({
      ...{ argv: ['tar', '-xf', '-', '-C', '/work'], deadlineMs: KEEP_MS, outputBytes: OUTPUT_BYTES },
      stdin: readWorkspace(tar, run.fileKeys),
    })
    const exit = await unpacked.exit
    if (exit.kind !== 'code' || exit.code !== 0) {
      throw new StepFailure('sandbox_failed', `the workspace could not be brought back: ${told(exit)}`)
    }
    return
  }
  for (const { path, content, encoding, executable } of run.files) {
    const bytes = Buffer.from(content, encoding === 'base64' ? 'base64' : 'utf8')
    await asStep(sandbox.writeFile(path, bytes, { ...(executable !== undefined && { executable }) }))
  }
}

function runSandbox(
  sandbox: Sandbox,
  { offered, env, limits, runId, egress, fileKeys }: SandboxFor,
  { tar, close, pip }: { tar: string; close: () => Promise<void>; pip: Record<string, string> },
): RunSandbox {
  const variables = {
    PATH,
    PYTHONPATH: '/usr/lib/waybill:/work/.python',
    HOME: '/work',
    WAYBILL_RUN_ID: runId,
    ...proxyVariables(egress),
    ...pip,
    ...env,
  }

  async function run(
    { argv, cwd, stdin, env: own }: Command,
    bounds: Parameters<RunSandbox['run']>[1],
  ): Promise<CommandEnd> {
    const started = await asStep(
      sandbox.exec({
        ...{ argv, env: { ...variables, ...own }, deadlineMs: bounds.deadlineMs },
        outputBytes: bounds.outputBytes ?? OUTPUT_BYTES,
        ...(cwd !== undefined && { cwd }),
        ...(stdin !== undefined && { stdin: Buffer.from(stdin) }),
      }),
    )
    const kill = () => started.signal('SIGKILL')
    bounds.signal.addEventListener('abort', kill, { once: true })
    if (bounds.signal.aborted) kill()
    try {
      const [stdout, stderr, exit] = await Promise.all([textOf(started.stdout), textOf(started.stderr), started.exit])
      bounds.signal.throwIfAborted()
      switch (exit.kind) {
        case 'code':
          return { stdout, stderr, exitCode: exit.code }
        case 'signal':
          return { stdout, stderr, signal: exit.signal }
        case 'limit':
          return {
            ...{ stdout, stderr, limit: { name: exit.limit, detail: exit.detail } },
            ...(exit.limit === 'output' && { truncated: true }),
          }
        case 'lost':
          throw new StepFailure('sandbox_lost', `the sandbox ended under the command: ${exit.detail}`)
      }
    } finally {
      bounds.signal.removeEventListener('abort', kill)
    }
  }

  async function keep(): Promise<void> {
    await mkdir(join(tar, '..'), { recursive: true, mode: 0o700 })
    const packed = await asStep(
      sandbox.exec({
        ...{ argv: ['tar', '-cf', '-', '-C', '/work', '.'], deadlineMs: KEEP_MS },
        // Headers and padding on top of what the workspace may hold.
        outputBytes: (limits.diskMb + 16) * 1024 * 1024,
      }),
    )
    const next = `${tar}.next`
    await writeWorkspace(next, packed.stdout, fileKeys)
    const exit = await packed.exit
    if (exit.kind !== 'code' || exit.code !== 0) {
      await rm(next, { force: true })
      throw new StepFailure('sandbox_failed', `the workspace could not be kept: ${told(exit)}`)
    }
    await rename(next, tar)
  }

  async function pipe(argv: Command['argv']): Promise<SandboxPipe> {
    const input = byteQueue()
    const started = await asStep(
      sandbox.exec({
        ...{ argv, env: variables, stdin: input.chunks, outputBytes: PIPE_BYTES },
        deadlineMs: Math.min(limits.timeoutSeconds * 1000, LONGEST_MS),
      }),
    )
    const words = lastWords(started.stderr)
    return {
      stdout: started.stdout,
      write: input.push,
      ended: Promise.all([started.exit, words]).then(([exit, said]) =>
        said === '' ? told(exit) : `${told(exit)}: ${said}`,
      ),
      kill() {
        input.end()
        started.signal('SIGKILL')
      },
    }
  }

  let keeping: Promise<void> = Promise.resolve()
  return {
    offered,
    kernelRelease: sandbox.kernelRelease,
    run,
    pipe,
    serve: (port, answer) => asStep(sandbox.serve(port, httpOver(answer))),
    writeFile: (path, content) => asStep(sandbox.writeFile(path, content)),
    readFile: (path, maxBytes) => asStep(sandbox.readFile(path, maxBytes)),
    listFiles: path => asStep(sandbox.listFiles(path)),
    // One after another: they write to one place.
    keep() {
      keeping = keeping.catch(() => undefined).then(keep)
      return keeping
    },
    close,
  }
}

/** What the backend refuses is told to the model as the failure of its call. */
async function asStep<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof IsolationError)) throw error
    throw new StepFailure(error.limit ? `limit_${error.limit}` : error.code, error.message, { cause: error })
  }
}
