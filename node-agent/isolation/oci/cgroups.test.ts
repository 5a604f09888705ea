import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { requireBackend } from '../../../tests/backends/require.ts'

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
