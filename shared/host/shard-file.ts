import { stat } from 'node:fs/promises'
import { DbOpenError } from '../sql/db-fault.ts'
import { RefusedError } from './known-fault.ts'

const SERVER = /^(?:https?|libsql|wss?):/i

export const isServer = (url: string): boolean => SERVER.test(url)
export const filePath = (url: string): string => url.replace(/^file:(?:\/\/)?/, '')

/** Of a shard that the directory names: opened in its absence, an empty database would stand in the place of a lost one. */
export async function refuseMissing(url: string): Promise<void> {
  if (isServer(url) || (await stat(filePath(url)).catch(() => undefined)) !== undefined) return
  throw new DbOpenError('missing', `There is no database at ${url}, where a shard is by the directory: put it back.`)
}

/** The directory holds no secret; the variable is where the token of the servers belongs. */
export function refuseToken(url: string, variable: string): void {
  if (/[?&]authToken=/.test(url))
    throw new RefusedError(`the directory holds no secret: leave the token out of the address, and set ${variable}`)
}
