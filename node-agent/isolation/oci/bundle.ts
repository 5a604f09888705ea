import type { SandboxLimits } from '../driver.ts'
import { CGROUP_PARENT, type CgroupLimits, CPU_PERIOD, TMP_MB } from './cgroups.ts'
import { seccompProfile } from './seccomp.ts'

export interface BundleOptions {
  rootfs: string
  limits: SandboxLimits
  group: string
  cgroup: CgroupLimits
  /** First of 65,536 ids of the host that stand for those inside; absent: no user namespace of our own. */
  hostIds?: number
  seccomp: boolean
  /** Whether the agent is root inside, so that commands, which never are, cannot signal it. */
  rootAgent: boolean
  /** A folder of the host that is seen read-only as /opt. */
  tools?: string
  /** Where the container's own control group is to be read inside: in a machine, whose groups the host cannot read. */
  counters?: boolean
}

/** Ids that no user of the host has: what escapes the sandbox has no rights. */
export const HOST_IDS = 1_879_048_192

/** The user inside that runs commands; the agent's source knows it too. */
const USER = 1000

/** What it takes to become that user, and to end its processes. */
const AGENT_CAPABILITIES = ['CAP_SETUID', 'CAP_SETGID', 'CAP_KILL']

const MASKED = `/proc/acpi /proc/asound /proc/kcore /proc/keys /proc/latency_stats /proc/sched_debug /proc/scsi
  /proc/timer_list /proc/timer_stats /proc/config.gz /proc/kallsyms /proc/kpagecount /proc/kpageflags
  /proc/kpagecgroup /proc/interrupts /sys/firmware /sys/devices/virtual/powercap`
const READ_ONLY = '/proc/bus /proc/fs /proc/irq /proc/sys /proc/sysrq-trigger'
const words = (text: string) => text.split(/\s+/).filter(Boolean)

const tmpfs = (destination: string, megabytes: number) => ({
  destination,
  type: 'tmpfs',
  source: 'tmpfs',
  options: ['nosuid', 'nodev', 'mode=1777', `size=${megabytes}m`],
})

const COUNTERS = [
  { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
  { destination: '/sys/fs/cgroup', type: 'cgroup', source: 'cgroup', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
]

/** `config.json` of an OCI bundle. No network namespace is shared and none has an interface beside `lo`. */
export function bundleOf({
  rootfs,
  limits,
  group,
  cgroup,
  hostIds,
  seccomp,
  rootAgent,
  tools,
  counters = false,
}: BundleOptions) {
  const granted = rootAgent ? AGENT_CAPABILITIES : []
  const user = rootAgent ? 0 : USER
  const ids = hostIds === undefined ? undefined : [{ containerID: 0, hostID: hostIds, size: 65_536 }]
  return {
    ociVersion: '1.0.2',
    process: {
      terminal: false,
      user: { uid: user, gid: user },
      args: ['/sandbox-agent', 'pipe'],
      env: ['PATH=/usr/local/bin:/usr/bin:/bin'],
      cwd: '/work',
      capabilities: { bounding: granted, effective: granted, permitted: granted, inheritable: [], ambient: [] },
      rlimits: [
        { type: 'RLIMIT_NOFILE', hard: 1024, soft: 1024 },
        { type: 'RLIMIT_CORE', hard: 0, soft: 0 },
      ],
      noNewPrivileges: true,
    },
    root: { path: rootfs, readonly: true },
    hostname: 'sandbox',
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
      {
        destination: '/dev',
        type: 'tmpfs',
        source: 'tmpfs',
        options: ['nosuid', 'strictatime', 'mode=755', 'size=64k'],
      },
      { ...tmpfs('/dev/shm', TMP_MB), source: 'shm' },
      tmpfs('/tmp', TMP_MB),
      tmpfs('/work', limits.diskMb),
      ...(counters ? COUNTERS : []),
      ...(tools === undefined
        ? []
        : [{ destination: '/opt', type: 'bind', source: tools, options: ['bind', 'ro', 'nosuid', 'nodev'] }]),
    ],
    linux: {
      namespaces: ['pid', 'ipc', 'uts', 'mount', 'cgroup', 'network', ...(ids === undefined ? [] : ['user'])].map(
        type => ({
          type,
        }),
      ),
      ...(ids !== undefined && { uidMappings: ids, gidMappings: ids }),
      cgroupsPath: `${CGROUP_PARENT}/${group}`,
      resources: {
        devices: [{ allow: false, access: 'rwm' }],
        // Swap counts with memory, so that equal values leave none.
        memory: { limit: cgroup.memoryBytes, swap: cgroup.memoryBytes },
        pids: { limit: cgroup.pids },
        cpu: { quota: cgroup.cpuQuota, period: CPU_PERIOD },
      },
      maskedPaths: words(MASKED),
      readonlyPaths: words(READ_ONLY),
      ...(seccomp && { seccomp: seccompProfile() }),
    },
  }
}
