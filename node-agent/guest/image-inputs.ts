import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Where scripts/setup-host.sh leaves the kernel and the tools. */
export const INPUTS_FOLDER = process.env.WAYBILL_GUEST_INPUTS ?? '/var/lib/waybill/guest-inputs'

/** The order in which the guest loads them: each needs those before it. */
export const MODULES = [
  'virtio_ring',
  'virtio',
  'virtio_pci_modern_dev',
  'virtio_pci_legacy_dev',
  'virtio_pci',
  'virtio_console',
  // What Firecracker's machines have in place of these.
  'virtio_mmio',
  'vsock',
  'vmw_vsock_virtio_transport_common',
  'vmw_vsock_virtio_transport',
] as const

export interface ImageInput {
  content: Uint8Array
  sha256: string
  /** The package it came from, with its version. */
  source: string
}

/** What an image is built from is missing or is not what the lock says. */
export class ImageInputError extends Error {
  override name = 'ImageInputError'
}

/** `<sha256>  <file> <package> <version>`, one line for each file. */
export function readLock(text: string): Map<string, { sha256: string; source: string }> {
  const entries = text
    .split('\n')
    .filter(line => line !== '')
    .map(line => {
      const match = /^([0-9a-f]{64}) {2}(\S+) (\S+ \S+)$/.exec(line)
      if (match === null) throw new ImageInputError(`The lock of the guest's inputs has a line that is none: ${line}`)
      return [match[2]!, { sha256: match[1]!, source: match[3]! }] as const
    })
  return new Map(entries)
}

/** Programs of an image with interpreters. */
export const INTERPRETERS = ['python3', 'node'] as const

/** A package, and where it lies. */
export type PinnedPackage = Omit<ImageInput, 'content'> & { path: string }

/** What an image may have on top of its kernel and tools, and where its packages are written down. */
export type Addition = 'interpreters' | 'browser'

/** The packages of what is added, each checked against its digest: what a package manager resolved once, and no more. */
export async function readPackages(
  folder: string,
  additions: readonly Addition[],
): Promise<Map<string, PinnedPackage>> {
  const packages = new Map<string, PinnedPackage>()
  const versions = new Map<string, string>()
  for (const addition of additions) {
    const text = await readFile(join(folder, `${addition}.lock`), 'utf8').catch((cause: unknown) => {
      const of = addition === 'browser' ? 'a browser' : 'interpreters'
      const how = 'run "bash scripts/setup-host.sh" of a clone as root'
      throw new ImageInputError(`There are no packages of ${of} in ${folder}: ${how}.`, { cause })
    })
    for (const [file, pinned] of readLock(text)) {
      const [name, version] = pinned.source.split(' ') as [string, string]
      const other = versions.get(name)
      if (other !== undefined && other !== version) {
        const how = `Remove ${folder} and run "bash scripts/setup-host.sh" of a clone to fetch all of them at once.`
        throw new ImageInputError(`The locks name ${name} ${other} and ${name} ${version}. ${how}`)
      }
      if (other !== undefined) continue
      versions.set(name, version)
      const path = join(folder, file)
      checkDigest(path, sha256Of(await readFile(path)), pinned.sha256)
      packages.set(file, { ...pinned, path })
    }
  }
  return packages
}

function checkDigest(path: string, found: string, expected: string): void {
  if (found === expected) return
  throw new ImageInputError(
    `${path} is not what the lock names (expected ${expected}, got ${found}). ` +
      'Remove the folder and run "bash scripts/setup-host.sh" of a clone to fetch it again.',
  )
}

/** Every input, each checked against the digest that was written down when it was fetched. */
export async function readInputs(folder: string): Promise<Map<string, ImageInput>> {
  const text = await readFile(join(folder, 'inputs.lock'), 'utf8').catch((cause: unknown) => {
    throw new ImageInputError(
      `There are no guest inputs in ${folder}: run "bash scripts/setup-host.sh" of a clone as root, or set WAYBILL_GUEST_INPUTS.`,
      { cause },
    )
  })
  const lock = readLock(text)
  const inputs = new Map<string, ImageInput>()
  for (const name of ['vmlinuz', 'busybox', ...MODULES.map(module => `${module}.ko`)]) {
    const pinned = lock.get(name)
    if (pinned === undefined) {
      throw new ImageInputError(
        `The lock in ${folder} does not name ${name}, which an earlier version did not need: run "bash scripts/setup-host.sh" of a clone as root.`,
      )
    }
    const content = await readFile(join(folder, name))
    const sha256 = sha256Of(content)
    checkDigest(join(folder, name), sha256, pinned.sha256)
    inputs.set(name, { content, sha256, source: pinned.source })
  }
  return inputs
}

export const sha256Of = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
