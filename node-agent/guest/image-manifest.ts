import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { BROWSER } from '../../runtime/execution/browse/launch.ts'
import { EnvError } from '../../shared/env/read-env.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { IMAGE_NAME } from '../../shared/wire/runtime/isolation.ts'

const digest = z.string().regex(/^[0-9a-f]{64}$/)

export const imageManifest = z.strictObject({
  version: z.literal(1),
  inputs: z.array(z.strictObject({ name: z.string(), sha256: digest, source: z.string() })),
  outputs: z.strictObject({ agent: digest, vmlinux: digest, initramfs: digest, root: digest.optional() }),
  /** Interpreters that it has, what installs packages for them, and a browser. */
  programs: z.array(z.enum(['python3', 'node', 'pip', 'npm', BROWSER])).default([]),
  /** Of its files, which a virtual machine holds in memory. */
  rootMb: z.int().min(0).default(0),
})
export type ImageManifest = z.infer<typeof imageManifest>

/** A built image on this machine. */
export interface GuestImage {
  rootfs: string
  vmlinux: string
  initramfs: string
  /** Stands for everything in it. */
  digest: string
  /** Beyond the plain image. */
  programs: readonly string[]
  /** Of its files beyond the plain image, which a virtual machine holds in memory. */
  rootMb: number
}

/** Stands where no image was built: nothing can be started from it. */
export const NO_IMAGE: GuestImage = {
  rootfs: '',
  vmlinux: '',
  initramfs: '',
  digest: '',
  programs: [],
  rootMb: 0,
}

/** The image in a folder, or undefined when none was built there. */
export async function openImage(folder: string): Promise<GuestImage | undefined> {
  const written = await readFile(join(folder, 'manifest.json'), 'utf8').catch(() => undefined)
  if (written === undefined) return undefined
  const { outputs, programs, rootMb } = readManifest(folder, written)
  return {
    rootfs: join(folder, 'rootfs'),
    vmlinux: join(folder, 'vmlinux'),
    initramfs: join(folder, 'initramfs'),
    programs,
    rootMb,
    digest: createHash('sha256').update(Object.values(outputs).join()).digest('hex'),
  }
}

function readManifest(folder: string, written: string): ImageManifest {
  try {
    return imageManifest.parse(readJson(written))
  } catch (cause) {
    throw new EnvError(`${join(folder, 'manifest.json')} is damaged: remove the folder, and build the image again`, {
      cause,
    })
  }
}

export interface NamedImage {
  name: string
  digest: string
  programs: readonly string[]
  /** Why it cannot be used. */
  damaged?: string
}

/** Those in a folder, each under the name of its own, in order of names. */
export async function namedImages(folder: string): Promise<NamedImage[]> {
  const names = (await readdir(folder).catch((): string[] => [])).filter(name => IMAGE_NAME.test(name)).toSorted()
  const images = await Promise.all(names.map(name => openImage(join(folder, name)).catch(damaged)))
  return names.flatMap((name, at) => {
    const image = images[at]
    if (image === undefined) return []
    if ('damaged' in image) return [{ name, digest: '', programs: [], ...image }]
    return [{ name, digest: image.digest, programs: image.programs }]
  })
}

function damaged(error: unknown): { damaged: string } {
  if (!(error instanceof EnvError)) throw error
  return { damaged: error.message }
}
