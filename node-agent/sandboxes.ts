import { access, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { StepFailure } from '../runtime/execution/failure.ts'
import {
  EGRESS_PORT,
  type Offered,
  type RunSandbox,
  type Sandboxes,
  type SandboxFor,
} from '../runtime/execution/sandbox/sandboxes.ts'
import type { ResolveHost } from '../shared/host/resolve-host.ts'
import { type OutboundRule, outboundRule } from '../shared/http/outbound/outbound-rule.ts'
import type { Proxies } from '../shared/http/outbound/proxies.ts'
import type { Log } from '../shared/log/log.ts'
import { IMAGE_NAME } from '../shared/wire/runtime/isolation.ts'
import { egressProxy } from './egress/egress-proxy.ts'
import { reachedPlaces } from './egress/reached.ts'
import type { NodeEnv } from './env.ts'
import { type GuestImage, NO_IMAGE, openImage } from './guest/image-manifest.ts'
import type { Driver, Probe } from './isolation/driver.ts'
import { boundedProbe, driversOf, PROBE_MS, reapAll } from './isolation/drivers.ts'
import { asStep, prepareWorkspace, runSandbox } from './run-sandbox.ts'
import { sessionMachines } from './session-machines.ts'

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
  /** Of this network, where its variables name one. */
  proxies?: Proxies | undefined
}

const START_MS = 30_000
/** Processes of a run; gVisor's host tasks count for more and its driver makes room for them. */
const PIDS = 128

/** The drivers of one image. */
interface Machine {
  drivers: readonly Driver[]
  image: GuestImage | undefined
}

/** Those of the usual image; with a name of that one, undefined where it is not on this node. */
type MachineOf = (name?: string) => Promise<Machine | undefined>

/** The usual image and those that are asked for by name, each with drivers of its own, opened when it is first wanted. One that was built anew is another one. */
function imagesOf({ env, log }: Pick<NodeSandboxesOptions, 'env' | 'log'>) {
  let usual: Promise<Machine> | undefined
  const named = new Map<string, Machine>()

  async function begin() {
    const image = await openImage(env.NODE_AGENT_IMAGE_DIR)
    const drivers = driversOf(env, image ?? NO_IMAGE)
    const reaped = await reapAll(drivers)
    if (reaped.length > 0) log.info('sandboxes of an earlier process were removed', { reaped: reaped.length })
    return { drivers, image }
  }
  /** Undefined: there is none that can be used. */
  const openNamed = (name: string) =>
    openImage(join(env.NODE_AGENT_IMAGES_DIR, name)).catch((error: unknown) => {
      log.warn('a guest image cannot be used', { image: name, error })
      return undefined
    })
  const of: MachineOf = async name => {
    usual ??= begin()
    // What an earlier process left is gone before anything is started.
    const machine = await usual
    if (name === undefined) return machine
    const image = IMAGE_NAME.test(name) ? await openNamed(name) : undefined
    if (image === undefined) return undefined
    const key = `${name} ${image.digest}`
    const made = named.get(key) ?? { drivers: driversOf(env, image), image }
    named.set(key, made)
    return made
  }

  return {
    of,
    async close(): Promise<void> {
      const all = [...(usual ? [await usual] : []), ...named.values()]
      await Promise.all(all.flatMap(({ drivers }) => drivers.map(driver => driver.close())))
    },
  }
}

/** Which backends work here, each tried once with each image, when it is first asked for. */
function backendOffers({
  env,
  log,
  probes,
  machineOf,
}: Pick<NodeSandboxesOptions, 'env' | 'log' | 'probes'> & { machineOf: MachineOf }) {
  const tried = new Map<string, Promise<Offered | undefined>>()
  const passed: Offered[] = []

  async function probe(backend: string, { drivers, image }: Machine, name?: string): Promise<Offered | undefined> {
    if (env.NODE_AGENT_BACKENDS?.includes(backend) === false) return undefined
    const driver = drivers.find(one => one.backend === backend)
    // A guest without an image has nothing to run; an interpreter has no guest.
    if (driver === undefined || (backend === 'wasm' ? name !== undefined : image === undefined)) return undefined
    const known = name === undefined ? probes?.find(one => one.backend === backend) : undefined
    const { available, accel, reasons } = known ?? (await boundedProbe(driver, PROBE_MS))
    if (!known) {
      log.debug('an isolation backend was tried', { backend, image: name, available, reasons: reasons.join(' ') })
    }
    if (!available) return undefined
    const programs = new Set(
      backend === 'wasm'
        ? ['node']
        : [...(image?.programs ?? []), ...(await toolsFor(driver, env.NODE_AGENT_SANDBOX_TOOLS))],
    )
    const named = name === undefined || image === undefined ? undefined : { name, digest: image.digest }
    const offer = { backend: driver.backend, programs, ...(accel && { accel }), ...(named && { image: named }) }
    if (name === undefined) passed.push(offer)
    return offer
  }

  async function offered(backends: readonly string[], name?: string): Promise<Offered[]> {
    const machine = await machineOf(name)
    if (machine === undefined) return []
    const found: Offered[] = []
    // One after another: each probe starts something.
    for (const backend of backends) {
      const key = name === undefined ? backend : `${backend} ${name} ${machine.image?.digest}`
      let known = tried.get(key)
      if (known === undefined) {
        known = probe(backend, machine, name).catch((error: unknown) => {
          log.warn('an isolation backend could not be tried', { backend, image: name, error })
          return undefined
        })
        tried.set(key, known)
      }
      const offer = await known
      if (offer) found.push(offer)
    }
    return found
  }

  return { offered, known: () => passed }
}

/** The isolation backends of this machine as the engine uses them: one sandbox for each claim of a run. */
export function nodeSandboxes({
  env,
  workspaces,
  log,
  rule = outboundRule(),
  resolve,
  probes,
  proxies,
}: NodeSandboxesOptions): Sandboxes & { close(): Promise<void> } {
  const images = imagesOf({ env, log })
  const open = new Set<RunSandbox>()
  const machines = sessionMachines({ log })

  const { offered, known } = backendOffers({ env, log, probes, machineOf: images.of })
  const tarOf = (id: string) => join(workspaces, `${id}.tar`)

  async function driverOf({ backend, image }: Offered): Promise<Driver> {
    const machine = await images.of(image?.name)
    if (image !== undefined && machine?.image?.digest !== image.digest)
      throw new StepFailure(
        'sandbox_failed',
        `the guest image ${image.name} was built anew meanwhile: start the run again`,
      )
    const driver = machine?.drivers.find(one => one.backend === backend)
    if (driver === undefined) throw new StepFailure('sandbox_failed', `this node has no ${backend}`)
    return driver
  }

  return {
    offered,
    known,

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
      const places = reachedPlaces()
      const opened = runSandbox(sandbox, run, { tar, close, registries: registryVariables(env), reached: places.take })
      open.add(opened)
      void sandbox.ended.then(() => open.delete(opened))
      try {
        // Answered for this turn: another may have had other rules.
        if (run.egress.rules.length > 0) {
          const proxy = egressProxy({ egress: run.egress, rule, log, places, proxies, ...(resolve && { resolve }) })
          await asStep(sandbox.serve(EGRESS_PORT, proxy))
        }
        if (fresh) await prepareWorkspace(sandbox, run, tar)
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
      await images.close()
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
function registryVariables({
  NODE_AGENT_PIP_INDEX: index,
  NODE_AGENT_NPM_REGISTRY: npm,
}: NodeEnv): Record<string, string> {
  const pip = index === undefined ? undefined : new URL(index)
  return {
    ...(pip && { PIP_INDEX_URL: pip.href, ...(pip.protocol === 'http:' && { PIP_TRUSTED_HOST: pip.hostname }) }),
    ...(npm !== undefined && { npm_config_registry: npm }),
  }
}

const limitsOf = ({ memoryMb, vcpus, diskMb }: SandboxFor['limits']) => ({ memoryMb, cpus: vcpus, pids: PIDS, diskMb })
