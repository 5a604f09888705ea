import { rm } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import { IsolationError } from '../driver.ts'
import { runTool } from '../run-tool.ts'
import { isInMemory } from '../tmpfs.ts'

/**
 * Makes a folder one that is in memory alone, from which programs may be started. Firecracker writes the memory of a machine
 * into its jail in clear, and so the jail may not be on a disk.
 */
export async function inMemory(folder: string): Promise<void> {
  await makeFolder(folder, 0o711)
  if (await isInMemory(folder)) return
  const { code, stderr } = await runTool('mount', ['-t', 'tmpfs', '-o', 'mode=0711', 'tmpfs', folder], 5000)
  if (code !== 0)
    throw new IsolationError('start_failed', `No folder in memory could be made at ${folder}: ${stderr.trim()}`)
}

/** Gives the folder back with all that is in it. It is a mount of its own but where the folder above is in memory too. */
export async function outOfMemory(folder: string): Promise<void> {
  // A process that was killed may hold it a moment longer.
  for (let tries = 0; tries < 20 && (await isInMemory(folder)); tries++) {
    const { stderr } = await runTool('umount', [folder], 5000)
    if (!stderr.includes('busy')) break
    await wait(50)
  }
  // Where something still holds it, the next reap tries again.
  await rm(folder, { recursive: true, force: true }).catch(() => undefined)
}
