import { constants } from 'node:fs'
import { access, readdir, stat } from 'node:fs/promises'

/** Why hardware virtualisation cannot be used here, or undefined when the device may be opened: a guest still has to boot. */
export async function kvmTrouble(device = '/dev/kvm'): Promise<string | undefined> {
  const may = await access(device, constants.R_OK | constants.W_OK).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code,
  )
  if (may === 'ENOENT') return `There is no ${device}: this machine offers no hardware virtualisation.`
  if (may !== undefined) return `${device} may not be opened: add the user of the node to the group kvm.`
  return undefined
}

/**
 * Why QEMU cannot use it, and what to do. As root a node starts QEMU as a user of no rights in the group of the device, so
 * what root may open says nothing.
 */
export async function qemuKvmTrouble(device = '/dev/kvm'): Promise<{ reason: string; install: string } | undefined> {
  const trouble = await kvmTrouble(device)
  if (trouble !== undefined)
    return { reason: trouble, install: 'Use a machine with vmx or svm, or one that passes them on.' }
  if (process.getuid?.() !== 0) return undefined
  const { mode, gid } = await stat(device)
  if (isOpenToAll(mode) || ((mode & 0o060) === 0o060 && gid !== 0)) return undefined
  const found = `${device} has mode ${(mode & 0o777).toString(8).padStart(4, '0')} and the group ${gid}`
  return {
    reason: `${found}. QEMU runs as a user without rights in the group of the device, which must have access and must not be root's.`,
    install: `Run "groupadd -f -r kvm && chgrp kvm ${device} && chmod 0660 ${device}" as root, and again whenever the device is made anew.`,
  }
}

const isOpenToAll = (mode: number) => (mode & 0o006) === 0o006

/** The group in which QEMU may open the device, where it needs one: never that of root. */
export async function kvmGroup(device = '/dev/kvm'): Promise<number | undefined> {
  const { mode, gid } = await stat(device)
  return isOpenToAll(mode) || gid === 0 ? undefined : gid
}

/** A remark on the module behind /dev/kvm where it is known not to run ordinary kernels. */
export async function kvmRemark(): Promise<string | undefined> {
  const modules = await readdir('/sys/module').catch((): string[] => [])
  return modules.includes('kvm_pvm') && !modules.includes('kvm_intel') && !modules.includes('kvm_amd')
    ? 'KVM is here through kvm_pvm, which creates machines but was not seen to boot an ordinary kernel.'
    : undefined
}
