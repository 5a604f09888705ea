import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { ConfigError } from '../active-config.ts'

/** The text of the routing config; throws ConfigError when there is none to read. */
export async function readConfigFile(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ConfigError(`ROUTER_CONFIG names ${file}, which cannot be read: ${why}`, { cause })
  }
}

/** Reads the files that a config names, from the folder of the config. */
export function besideConfig(file: string | undefined): (name: string) => string {
  return name => readFileSync(resolve(dirname(file ?? '.'), name), 'utf8')
}
