import { spawn, spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { requireBackend } from '../../../tests/backends/require.ts'
import { cgroupVersion, createGroup, readBack, removeGroup } from './cgroups.ts'

const ALONE = ['--mount', '--propagation', 'private', 'sh', '-c']
const canUnmount = spawnSync('unshare', [...ALONE, 'umount -R /sys/fs/cgroup']).status === 0
const here = requireBackend('unshare', canUnmount, 'run as root on Linux with control groups mounted')

/** Runs a script of this project in a mount namespace of its own, where no control groups are mounted. */
function withoutCgroups(script: string) {
  const url = new URL('./cgroups.ts', import.meta.url).href
  const program = `import * as cgroups from ${JSON.stringify(url)}\n${script}`
  const command = `umount -R /sys/fs/cgroup && exec "$0" --input-type=module -e "$1"`
  return spawnSync('unshare', [...ALONE, command, process.execPath, program], {
    encoding: 'utf8',
    timeout: 15_000,
  })
}

test.runIf(here)('where no control groups are mounted a group is refused with what to do, and the process ends', () => {
  const { status, stdout, stderr } = withoutCgroups(`
    console.log(await cgroups.cgroupVersion(), await cgroups.listGroups())
    await cgroups.createGroup('wb-none', { memoryBytes: 1 << 26, pids: 8, cpuQuota: 100000 }, process.pid)
      .catch(error => console.log(error.code, error.message))
    await cgroups.removeGroup('wb-none')`)
  expect(stderr).toBe('')
  expect(stdout).toMatch(/^undefined \[\]\nlimits_not_in_force No control groups are mounted at \/sys\/fs\/cgroup/)
  expect(status).toBe(0)
})

/**
 * Runs a script where the control groups are plain files as version 2 has them, and the record of each process names the
 * group that is made. The kernel enforces nothing there: what holds is what is written, and what is read back.
 */
function withVersion2(script: string) {
  const url = new URL('./cgroups.ts', import.meta.url).href
  const program = `import * as cgroups from ${JSON.stringify(url)}
    import { readFileSync, writeFileSync } from 'node:fs'
    const limits = { memoryBytes: 1 << 26, pids: 8, cpuQuota: 25000 }
    const at = '/sys/fs/cgroup/waybill/wb-two/'
    ${script}`
  const command = [
    'umount -R /sys/fs/cgroup && mount -t tmpfs tmpfs /sys/fs/cgroup',
    'echo "cpu memory pids" > /sys/fs/cgroup/cgroup.controllers',
    'echo "0::/waybill/wb-two" > /sys/fs/cgroup/record && mount --bind /sys/fs/cgroup/record /proc/$$/cgroup',
    'exec "$0" --input-type=module -e "$1"',
  ].join(' && ')
  return spawnSync('unshare', [...ALONE, command, process.execPath, program], { encoding: 'utf8', timeout: 15_000 })
}

test.runIf(here)('under version 2 memory, swap, processes and processor time are set and read back', () => {
  const { stdout, stderr } = withVersion2(`
    await cgroups.createGroup('wb-two', limits, process.pid)
    for (const file of ['memory.max', 'memory.swap.max', 'pids.max', 'cpu.max', 'cgroup.procs'])
      console.log(file, readFileSync(at + file, 'utf8').replace(String(process.pid), 'itself'))
    console.log(typeof await cgroups.readBack(process.pid, 'wb-two', limits))
    console.log((await cgroups.groupMembers('wb-two')).length)
    await cgroups.limitProcessors('wb-two', 'unlimited')
    console.log(readFileSync(at + 'cpu.max', 'utf8'))
    console.log(await cgroups.readBack(process.pid, 'wb-two', limits))
    await cgroups.limitProcessors('wb-two', limits.cpuQuota)
    writeFileSync(at + 'memory.swap.max', 'max')
    console.log(await cgroups.readBack(process.pid, 'wb-two', limits))`)
  expect(stderr).toBe('')
  expect(stdout.split('\n')).toEqual([
    'memory.max 67108864',
    'memory.swap.max 0',
    'pids.max 8',
    'cpu.max 25000 100000',
    'cgroup.procs itself',
    'object',
    '1',
    'max 100000',
    'processor time is limited to max, not to 25000',
    'swap is limited to max, not to 0',
    '',
  ])
})

const isVersion1 = here && (await cgroupVersion()) === 1

test.runIf(isVersion1)('under version 1 a swap that was not limited is found when it is read back', async () => {
  const limits = { memoryBytes: 1 << 26, pids: 8, cpuQuota: 25_000 }
  const group = `wb-swap-${process.pid}`
  const child = spawn('sleep', ['30'], { stdio: 'ignore' })
  try {
    await createGroup(group, limits, child.pid!)
    expect(typeof (await readBack(child.pid!, group, limits))).toBe('object')
    await writeFile(`/sys/fs/cgroup/memory/waybill/${group}/memory.memsw.limit_in_bytes`, String(1 << 28))
    expect(await readBack(child.pid!, group, limits)).toBe('swap is limited to 201326592, not to 0')
  } finally {
    await removeGroup(group)
    child.kill('SIGKILL')
  }
})
