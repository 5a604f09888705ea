import { mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/**
 * Creates a folder and the missing folders above it, one level at a time. A recursive `mkdir` of Node never returns where the kernel
 * answers ENOENT for the child of a folder that exists (below /proc, or in /sys/fs/cgroup without a mount): its thread spins and the
 * process cannot exit.
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  const missing: string[] = []
  for (let at = resolve(path); !(await isFolder(at)); at = dirname(at)) missing.unshift(at)
  for (const folder of missing) {
    await mkdir(folder, { mode }).catch(async (error: NodeJS.ErrnoException) => {
      // Another process may have created it meanwhile.
      if (error.code !== 'EEXIST' || !(await isFolder(folder))) throw error
    })
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return false
    throw error
  }
}
