import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { PROTOCOL } from '../../guest/frames.ts'
import { type GuestImage, NO_IMAGE } from '../../guest/image-manifest.ts'
import type { Accel, SandboxLimits } from '../driver.ts'
import { TMP_MB } from '../oci/cgroups.ts'

/** The guest's kernel, its first file system and the agent. */
const GUEST_OVERHEAD_MB = 80

/** QEMU itself, beside the memory of its guest: code, devices and what it translates. */
export const QEMU_OVERHEAD_MB = 224

/** The image's files are in memory, and while the kernel unpacks them they are there twice. */
export const ramMbOf = ({ memoryMb, diskMb }: SandboxLimits, { rootMb }: Pick<GuestImage, 'rootMb'>) =>
  memoryMb + diskMb + TMP_MB + GUEST_OVERHEAD_MB + 2 * rootMb

/** Where the memory of a machine comes from. */
export type Ram =
  /** A file that the machine writes to: the template. */
  | { kind: 'shared'; path: string }
  /** The same file, but what is written stays private: a clone. */
  | { kind: 'copy-on-write'; path: string }
  /** None of its own yet: it comes with the state. */
  | { kind: 'empty' }

export interface MachineOptions {
  id: string
  accel: Accel
  image: GuestImage
  ramMb: number
  ram: Ram
  /** Who made the host's processor, as CPUID names it; by default what /proc/cpuinfo says. */
  vendor?: string | undefined
  /** Starts from a state that is given over the control channel, and stays paused until told. */
  incoming: boolean
}

/** File descriptors that QEMU is started with. */
export const FDS = { control: 3, agent: 4, state: 5 } as const

const CMDLINE = [
  'panic=-1 quiet loglevel=0 random.trust_cpu=on cryptomgr.notests raid=noautodetect 8250.nr_uarts=0',
  'tsc=unstable rcupdate.rcu_expedited=1',
  // Otherwise the first file system takes half of what the kernel leaves free, too little for an image with interpreters.
  'rootfstype=ramfs',
].join(' ')

/** Only an emulated processor is started without these defences: it runs no other guest's code. */
const TCG_CMDLINE = 'nokaslr mitigations=off'

/**
 * Exactly one accelerator, as QEMU would otherwise fall back by itself. No disk, no network device, no display; the
 * machine has a control channel, a channel to the agent, and nothing else.
 */
export function machineArgs({ id, accel, image, ramMb, ram, incoming, vendor }: MachineOptions): string[] {
  const backend =
    ram.kind === 'empty'
      ? `memory-backend-ram,id=m0,size=${ramMb}M`
      : `memory-backend-file,id=m0,size=${ramMb}M,mem-path=${ram.path},share=${ram.kind === 'shared' ? 'on' : 'off'}`
  return [
    ...['-name', id],
    // Under TCG `microvm` hung in most boots; a plain PC did not. The clock of ACPI lets an idle kernel stop its ticks: without
    // it a hundred idle machines take two processors.
    ...['-M', 'pc,acpi=on,hpet=off,usb=off,vmport=off,smbus=off,memory-backend=m0'],
    ...['-object', backend],
    ...(accel === 'tcg' ? ['-accel', 'tcg,tb-size=64', '-cpu', 'max'] : ['-accel', 'kvm', '-cpu', hostCpu(vendor)]),
    ...['-m', String(ramMb), '-smp', '1'],
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
    ...['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'],
    ...['-kernel', image.vmlinux, '-initrd', image.initramfs],
    ...['-append', accel === 'tcg' ? `${CMDLINE} ${TCG_CMDLINE}` : CMDLINE],
    ...['-device', 'virtio-serial-pci'],
    ...['-chardev', `socket,id=agent,fd=${FDS.agent}`],
    ...['-device', 'virtserialport,chardev=agent,name=agent.0'],
    ...['-chardev', `socket,id=control,fd=${FDS.control}`],
    ...['-mon', 'chardev=control,mode=control'],
    ...(incoming ? ['-S', '-incoming', 'defer'] : []),
  ]
}

/**
 * The processor of a machine under KVM. ARCH_CAPABILITIES is a register of Intel's; a KVM may list it on AMD's as well and then
 * refuse to set it, which ends QEMU with `failed to set MSR 0x10a`. On Intel's it says which defences a guest does not need.
 */
function hostCpu(vendor = hostVendor()): string {
  return vendor === 'AuthenticAMD' || vendor === 'HygonGenuine' ? 'host,arch-capabilities=off' : 'host'
}

function hostVendor(): string | undefined {
  try {
    return /^vendor_id\s*:\s*(\S+)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

/** A state fits only a machine with the same QEMU, devices, kernel, files and agent. */
export function stateKey(version: string, options: Pick<MachineOptions, 'accel' | 'image' | 'ramMb'>): string {
  const args = machineArgs({ ...options, id: '', image: NO_IMAGE, ram: { kind: 'empty' }, incoming: false })
  const parts = [version, options.image.digest, PROTOCOL, args]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}
