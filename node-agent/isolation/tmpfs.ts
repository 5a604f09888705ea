import { stat, statfs } from 'node:fs/promises'
import { runTool } from './run-tool.ts'

const TMPFS = 0x01021994

/** Whether what is written there touches no disk, but for swap. */
export async function isInMemory(folder: string): Promise<boolean> {
  return (await statfs(folder).catch(() => undefined))?.type === TMPFS
}

/** Of what clones added to a template's file, as much may stay. */
const SPARE_BYTES = 32 * 2 ** 20

/** What a file takes of its file system. */
export const heldBytes = async (path: string): Promise<number> => (await stat(path)).blocks * 512

/**
 * Gives back the pages of zeros that clones added to the file of a template, which took `bytes` when it was made. A machine
 * that lives has copies of those that it wrote, and gets the others again.
 */
export async function giveBackZeros(path: string, bytes: number, deadlineMs: number): Promise<void> {
  if ((await heldBytes(path)) - bytes > SPARE_BYTES) await runTool('fallocate', ['--dig-holes', path], deadlineMs)
}
