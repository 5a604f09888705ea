import { z } from 'zod'
import type { GuestImage } from '../../guest/image-manifest.ts'
import type { SandboxLimits } from '../driver.ts'
import { CGROUP_PARENT } from '../oci/cgroups.ts'
import { ramMbOf } from '../qemu/machine.ts'

const id = z.string().regex(/^[A-Za-z0-9_]{1,64}$/)
const path = z.string().min(1)

/** Bodies of the requests that we send, written from the published API; a field that it does not have is refused. */
const BODIES = {
  'PUT /machine-config': z.strictObject({
    vcpu_count: z.int().min(1).max(32),
    mem_size_mib: z.int().min(1),
    smt: z.boolean().optional(),
    track_dirty_pages: z.boolean().optional(),
  }),
  'PUT /boot-source': z.strictObject({
    kernel_image_path: path,
    initrd_path: path.optional(),
    boot_args: z.string().optional(),
  }),
  'PUT /vsock': z.strictObject({ guest_cid: z.int().min(3), uds_path: path }),
  'PUT /entropy': z.strictObject({}),
  'PUT /actions': z.strictObject({ action_type: z.enum(['InstanceStart', 'SendCtrlAltDel', 'FlushMetrics']) }),
  'PATCH /vm': z.strictObject({ state: z.enum(['Paused', 'Resumed']) }),
  'PUT /snapshot/create': z.strictObject({
    snapshot_type: z.enum(['Full', 'Diff']).optional(),
    snapshot_path: path,
    mem_file_path: path,
  }),
  'PUT /snapshot/load': z.strictObject({
    snapshot_path: path,
    mem_backend: z.strictObject({ backend_type: z.enum(['File', 'Uffd']), backend_path: path }),
    resume_vm: z.boolean().optional(),
    track_dirty_pages: z.boolean().optional(),
    vsock_override: z.strictObject({ uds_path: path }).optional(),
  }),
  'PUT /drives/{id}': z.strictObject({
    drive_id: id,
    path_on_host: path,
    is_root_device: z.boolean(),
    is_read_only: z.boolean().optional(),
  }),
} as const

export interface FirecrackerRequest {
  method: 'PUT' | 'PATCH'
  path: string
  body: object
}

/** What is wrong with a request, by our own schema of the API; undefined when nothing is. */
export function requestFault({
  method,
  path,
  body,
}: {
  method: string
  path: string
  body: unknown
}): string | undefined {
  const drive = /^\/drives\/([^/]+)$/.exec(path)?.[1]
  const key = `${method} ${drive === undefined ? path : '/drives/{id}'}`
  if (!Object.hasOwn(BODIES, key)) return `there is no ${method} ${path}`
  const parsed = BODIES[key as keyof typeof BODIES].safeParse(body)
  if (!parsed.success) return z.prettifyError(parsed.error)
  if (drive !== undefined && (parsed.data as { drive_id: string }).drive_id !== drive) {
    return 'the drive in the path is not the one in the body'
  }
  return undefined
}

/** The port on which the agent listens, as the boot arguments tell it. */
export const AGENT_PORT = 1024

const BOOT_ARGS = `panic=-1 quiet loglevel=0 reboot=k random.trust_cpu=on 8250.nr_uarts=0 rootfstype=ramfs waybill.vsock=${AGENT_PORT}`

const put = (path: string, body: object): FirecrackerRequest => ({ method: 'PUT', path, body })

/** A machine has whole ones; its share of them is its group's. */
export const processorsOf = ({ cpus }: SandboxLimits) => Math.max(1, Math.ceil(cpus))

/** From nothing to a machine that boots, in the order that the API asks for. No network interface is ever added. */
export function bootRequests(limits: SandboxLimits, image: Pick<GuestImage, 'rootMb'>): FirecrackerRequest[] {
  return [
    put('/machine-config', {
      vcpu_count: processorsOf(limits),
      mem_size_mib: ramMbOf(limits, image),
      smt: false,
      track_dirty_pages: false,
    }),
    put('/boot-source', { kernel_image_path: JAIL.kernel, initrd_path: JAIL.initrd, boot_args: BOOT_ARGS }),
    put('/vsock', { guest_cid: 3, uds_path: JAIL.vsock }),
    put('/entropy', {}),
    put('/actions', { action_type: 'InstanceStart' }),
  ]
}

/** The machine pauses, is written out, and goes on. */
export function snapshotRequests(): [FirecrackerRequest, FirecrackerRequest, FirecrackerRequest] {
  return [
    { method: 'PATCH', path: '/vm', body: { state: 'Paused' } },
    put('/snapshot/create', { snapshot_type: 'Full', snapshot_path: JAIL.state, mem_file_path: JAIL.memory }),
    { method: 'PATCH', path: '/vm', body: { state: 'Resumed' } },
  ]
}

/** For a process that was configured in no other way. */
export function restoreRequests(): FirecrackerRequest[] {
  return [
    put('/snapshot/load', {
      snapshot_path: JAIL.state,
      mem_backend: { backend_type: 'File', backend_path: JAIL.memory },
      resume_vm: true,
    }),
  ]
}

export interface JailOptions {
  id: string
  firecracker: string
  base: string
  uid: number
  cgroupVersion: 1 | 2
}

/**
 * The jailer gives the process a root of its own, another user and a pid namespace. It stands in a group with its limits
 * before the jailer begins; the group is named here so that the jailer moves it to no other.
 */
export function jailerArgs({ id, firecracker, base, uid, cgroupVersion }: JailOptions): string[] {
  if (!/^[A-Za-z0-9-]{1,64}$/.test(id)) throw new RangeError(`The jailer takes no id like ${id}.`)
  return [
    ...['--id', id, '--exec-file', firecracker, '--uid', String(uid), '--gid', String(uid)],
    ...['--cgroup-version', String(cgroupVersion), '--parent-cgroup', `${CGROUP_PARENT.slice(1)}/${id}`],
    ...['--chroot-base-dir', base, '--new-pid-ns'],
    ...['--', '--api-sock', API_SOCKET],
  ]
}

/** Inside the jail; every path is relative to it. */
export const JAIL = {
  kernel: '/vmlinux',
  initrd: '/initramfs',
  vsock: '/agent.vsock',
  state: '/state',
  memory: '/memory',
}

export const API_SOCKET = '/api.sock'
