import { statfs } from 'node:fs/promises'

const TMPFS = 0x01021994

/** Whether what is written there touches no disk, but for swap. */
export async function isInMemory(folder: string): Promise<boolean> {
  return (await statfs(folder).catch(() => undefined))?.type === TMPFS
}
