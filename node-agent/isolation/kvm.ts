import { constants } from 'node:fs'
import { access, readdir } from 'node:fs/promises'

/** Why hardware virtualisation cannot be used here, or undefined when the device may be opened: a guest still has to boot. */
export async function kvmTrouble(device = '/dev/kvm'): Promise<string | undefined> {
  const may = await access(device, constants.R_OK | constants.W_OK).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code,
  )
  if (may === 'ENOENT') return 'There is no /dev/kvm: this machine offers no hardware virtualisation.'
  if (may !== undefined) return '/dev/kvm may not be opened: add the user of the node to the group kvm.'
  return undefined
}

/** A remark on the module behind /dev/kvm where it is known not to run ordinary kernels. */
export async function kvmRemark(): Promise<string | undefined> {
  const modules = await readdir('/sys/module').catch((): string[] => [])
  return modules.includes('kvm_pvm') && !modules.includes('kvm_intel') && !modules.includes('kvm_amd')
    ? 'KVM is here through kvm_pvm, which creates machines but was not seen to boot an ordinary kernel.'
    : undefined
}
