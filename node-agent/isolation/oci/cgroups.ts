import { readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import { IsolationError, type LimitName, type SandboxLimits } from '../driver.ts'

const ROOT = '/sys/fs/cgroup'

/** Those that hold the limits of a sandbox. */
const CONTROLLERS = ['memory', 'pids', 'cpu'] as const

/** Under this folder of each hierarchy stand the groups of this node. */
export const CGROUP_PARENT = '/waybill'

export interface CgroupLimits {
  memoryBytes: number
  pids: number
  /** Of a period of 100 ms, in µs. */
  cpuQuota: number
}

export const CPU_PERIOD = 100_000

/** Which hierarchy holds a controller: `v1` has one folder for each, `v2` one for all. */
interface Places {
  version: 1 | 2
  memory: string
  pids: string
  cpu: string
}

/** Undefined where no hierarchy that can hold the limits is mounted, as in a minimal container or a chroot. */
export async function cgroupVersion(): Promise<1 | 2 | undefined> {
  if ((await read(`${ROOT}/cgroup.controllers`)) !== undefined) return 2
  const held = await Promise.all(CONTROLLERS.map(name => read(`${ROOT}/${name}/cgroup.procs`)))
  return held.every(procs => procs !== undefined) ? 1 : undefined
}

/** The version, or a refusal that says what to do: without control groups no limit of a sandbox would hold. */
export async function requireCgroups(): Promise<1 | 2> {
  const version = await cgroupVersion()
  if (version !== undefined) return version
  throw new IsolationError(
    'limits_not_in_force',
    `No control groups are mounted at ${ROOT} (memory, pids and cpu), so no limit would hold: mount them, or start the container with its own cgroup namespace.`,
  )
}

/** Where a process stands, by its own record rather than by what was asked for. */
async function placesOf(pid: number): Promise<Places | undefined> {
  const text = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')
  const paths = new Map(
    // Of version 2 the list of controllers is empty.
    [...text.matchAll(/^\d+:([^:\n]*):(.*)$/gm)].flatMap(([, controllers, path]) =>
      controllers!.split(',').map(name => [name, path!] as const),
    ),
  )
  const version = await cgroupVersion()
  if (version === undefined) return undefined
  if (version === 2) {
    const path = paths.get('')
    return path === undefined ? undefined : { version: 2, ...all(ROOT + path) }
  }
  const [memory, pids, cpu] = CONTROLLERS.map(name => paths.get(name))
  if (memory === undefined || pids === undefined || cpu === undefined) return undefined
  return { version: 1, memory: `${ROOT}/memory${memory}`, pids: `${ROOT}/pids${pids}`, cpu: `${ROOT}/cpu${cpu}` }
}

const all = (path: string) => ({ memory: path, pids: path, cpu: path })

const read = (path: string) =>
  readFile(path, 'utf8').then(
    text => text.trim(),
    () => undefined,
  )

/**
 * Compares the limits that the kernel holds for a process with those that were asked for. The answer is what is wrong,
 * or the places in which its counters stand. Where a runtime makes groups of its own, the process may stand `below` the group.
 */
export async function readBack(
  pid: number,
  group: string,
  wanted: CgroupLimits,
  below = false,
): Promise<string | CgroupCounters> {
  const places = await placesOf(pid)
  if (places === undefined) return 'the sandbox stands in no control group'
  for (const controller of CONTROLLERS) {
    const path = places[controller]
    const own = below ? (path + '/').split(`${CGROUP_PARENT}/${group}/`)[0] : undefined
    if (own !== undefined && own !== path + '/') places[controller] = `${own}${CGROUP_PARENT}/${group}`
    if (!places[controller].endsWith(`${CGROUP_PARENT}/${group}`)) {
      return `the sandbox stands in ${path}, which is not its own group`
    }
  }
  const two = places.version === 2
  const found = {
    memory: await read(join(places.memory, two ? 'memory.max' : 'memory.limit_in_bytes')),
    pids: await read(join(places.pids, 'pids.max')),
    cpu: two
      ? (await read(join(places.cpu, 'cpu.max')))?.split(' ')[0]
      : await read(join(places.cpu, 'cpu.cfs_quota_us')),
    swap: await swapOf(places),
  }
  // The kernel rounds to whole pages.
  if (found.memory === undefined || Math.abs(Number(found.memory) - wanted.memoryBytes) > 65536) {
    return `memory is limited to ${found.memory ?? 'nothing'}, not to ${wanted.memoryBytes}`
  }
  if (found.pids !== String(wanted.pids))
    return `processes are limited to ${found.pids ?? 'nothing'}, not to ${wanted.pids}`
  if (found.cpu !== String(wanted.cpuQuota))
    return `processor time is limited to ${found.cpu ?? 'nothing'}, not to ${wanted.cpuQuota}`
  if (found.swap !== '0') return `swap is limited to ${found.swap}, not to 0`
  return counters(places)
}

/** How much a group may swap, in bytes or as `max`. Where the kernel counts no swap, what matters is whether there is any. */
async function swapOf({ version, memory }: Places): Promise<string> {
  const limit = await read(join(memory, version === 2 ? 'memory.swap.max' : 'memory.memsw.limit_in_bytes'))
  if (limit === undefined) {
    const areas = ((await read('/proc/swaps')) ?? '').split('\n').length - 1
    return areas > 0 ? 'nothing' : '0'
  }
  if (version === 2) return limit
  // The older interface counts both together.
  const held = (await read(join(memory, 'memory.limit_in_bytes'))) ?? limit
  return String(BigInt(limit) - BigInt(held))
}

export type CgroupCounters = ReturnType<typeof counters>

export interface Count {
  oomKills: number
  pidsRefused: number
}

function counters(places: Places) {
  const two = places.version === 2
  async function numberAt(file: string, key: string): Promise<number> {
    const text = (await read(file)) ?? ''
    return Number(new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
  }
  const count = async (): Promise<Count> => ({
    oomKills: await numberAt(join(places.memory, two ? 'memory.events' : 'memory.oom_control'), 'oom_kill'),
    pidsRefused: await numberAt(join(places.pids, 'pids.events'), 'max'),
  })
  return {
    count,
    /** The limit whose counter has moved since. */
    async hitSince(before: Count): Promise<LimitName | undefined> {
      const now = await count()
      if (now.oomKills > before.oomKills) return 'memory'
      return now.pidsRefused > before.pidsRefused ? 'pids' : undefined
    },
  }
}

/** Every folder of a group, in all hierarchies. */
async function foldersOf(group: string): Promise<string[]> {
  const version = await cgroupVersion()
  if (version === undefined) return []
  const hierarchies = version === 2 ? [ROOT] : (await readdir(ROOT)).map(name => join(ROOT, name))
  return hierarchies.map(path => path + join(CGROUP_PARENT, group))
}

/** Makes a group with these limits and puts a process, where there is one, into it. What the kernel made of it is for `readBack` to say. */
export async function createGroup(group: string, limits: CgroupLimits, pid?: number): Promise<void> {
  const memory = String(limits.memoryBytes)
  if ((await requireCgroups()) === 2) {
    const folder = ROOT + join(CGROUP_PARENT, group)
    await makeFolder(ROOT + CGROUP_PARENT)
    for (const at of [ROOT, ROOT + CGROUP_PARENT]) {
      await writeFile(join(at, 'cgroup.subtree_control'), '+memory +pids +cpu')
    }
    await makeFolder(folder)
    await writeFile(join(folder, 'memory.max'), memory)
    await limitSwap(join(folder, 'memory.swap.max'), '0')
    await writeFile(join(folder, 'pids.max'), String(limits.pids))
  } else {
    const [inMemory, inPids, inCpu] = CONTROLLERS.map(name => join(ROOT, name, CGROUP_PARENT, group))
    for (const folder of [inMemory!, inPids!, inCpu!]) await makeFolder(folder)
    await writeFile(join(inMemory!, 'memory.limit_in_bytes'), memory)
    await limitSwap(join(inMemory!, 'memory.memsw.limit_in_bytes'), memory)
    await writeFile(join(inPids!, 'pids.max'), String(limits.pids))
  }
  await limitProcessors(group, limits.cpuQuota)
  if (pid !== undefined) await addToGroup(group, pid)
}

/** A kernel that counts no swap has no such file; whether it has swap at all is for `readBack` to find out. */
async function limitSwap(file: string, limit: string): Promise<void> {
  await writeFile(file, limit).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' && error.code !== 'EACCES') throw error
  })
}

/** Sets the share of processor time of a group that stands. */
export async function limitProcessors(group: string, cpuQuota: number | 'unlimited'): Promise<void> {
  if ((await requireCgroups()) === 2) {
    const quota = cpuQuota === 'unlimited' ? 'max' : cpuQuota
    await writeFile(join(ROOT + CGROUP_PARENT, group, 'cpu.max'), `${quota} ${CPU_PERIOD}`)
    return
  }
  const folder = join(ROOT, 'cpu', CGROUP_PARENT, group)
  await writeFile(join(folder, 'cpu.cfs_period_us'), String(CPU_PERIOD))
  await writeFile(join(folder, 'cpu.cfs_quota_us'), String(cpuQuota === 'unlimited' ? -1 : cpuQuota))
}

/** Puts one more process into a group that stands. */
export async function addToGroup(group: string, pid: number): Promise<void> {
  const hierarchies = (await requireCgroups()) === 2 ? [ROOT] : CONTROLLERS.map(name => join(ROOT, name))
  for (const at of hierarchies) await writeFile(join(at + CGROUP_PARENT, group, 'cgroup.procs'), String(pid))
}

/** Processes that stand in a group. */
export async function groupMembers(group: string): Promise<number[]> {
  const hierarchy = (await requireCgroups()) === 2 ? ROOT : join(ROOT, 'memory')
  return membersOf(join(hierarchy + CGROUP_PARENT, group))
}

/** Ends every process of a group, whatever the runtime says of it. */
export async function killGroupMembers(group: string): Promise<void> {
  for (const folder of await foldersOf(group)) for (const pid of await membersOf(folder)) kill(pid)
}

/** Kills what is left in a group and removes it. A runtime that was killed itself leaves its groups behind. */
export async function removeGroup(group: string): Promise<void> {
  for (const folder of await foldersOf(group)) {
    for (let tries = 0; tries < 100; tries++) {
      for (const pid of await membersOf(folder)) kill(pid)
      const gone = await removeTree(folder)
      if (gone) break
      await wait(10)
    }
  }
}

async function removeTree(folder: string): Promise<boolean> {
  const inside = await readdir(folder, { withFileTypes: true }).catch(() => undefined)
  if (inside === undefined) return true
  for (const entry of inside) if (entry.isDirectory()) await removeTree(join(folder, entry.name))
  return rmdir(folder).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
  )
}

/** Its processes, and those of the groups that a runtime made below it. */
async function membersOf(folder: string): Promise<number[]> {
  const own = ((await read(join(folder, 'cgroup.procs'))) ?? '').split('\n').filter(Boolean).map(Number)
  const inside = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const groups = inside.filter(entry => entry.isDirectory())
  return own.concat(...(await Promise.all(groups.map(({ name }) => membersOf(join(folder, name))))))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended meanwhile.
  }
}

/** Groups of this node that exist in any hierarchy. */
export async function listGroups(): Promise<string[]> {
  const names = new Set<string>()
  for (const folder of await foldersOf('')) {
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      if (entry.isDirectory()) names.add(entry.name)
    }
  }
  return [...names]
}

/** Size of /tmp, and of /dev/shm. */
export const TMP_MB = 16

/** Files are held in memory, so their room is added to that of the processes. */
export const memoryBytesOf = ({ memoryMb, diskMb }: SandboxLimits, overheadMb: number) =>
  (memoryMb + diskMb + 2 * TMP_MB + overheadMb) * 1024 * 1024
