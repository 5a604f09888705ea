import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Log } from '../../shared/log/log.ts'
import type { RouterEnv } from '../env.ts'

/** Why copies of checkpoints cannot be written to ROUTER_ANCHOR_FILE, and what to do; undefined where they can. */
export async function anchorFault(file: string | undefined): Promise<string | undefined> {
  if (file === undefined || file === '') return undefined
  const there = await stat(file).catch(() => undefined)
  const folder = dirname(file)
  try {
    if (there?.isDirectory()) return `ROUTER_ANCHOR_FILE names ${file}, which is a folder: name a file`
    await access(there ? file : folder, constants.W_OK)
    return undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const mend = code === 'ENOENT' ? `there is no folder ${folder}: make it` : 'let this account write there'
    return `ROUTER_ANCHOR_FILE names ${file}, which cannot be written (${code}): ${mend}, or name another file`
  }
}

/** For a start: it goes on, because each copy is tried again until it succeeds. */
export async function logAnchorFault({ ROUTER_ANCHOR_FILE: file }: RouterEnv, log: Log): Promise<void> {
  const fault = await anchorFault(file)
  if (fault !== undefined) log.error(`${fault}; until then checkpoints are in the store alone`)
}
