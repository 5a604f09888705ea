import { dirname, resolve } from 'node:path'
import { readOperatorText, readRegular } from '../../shared/host/operator-file.ts'
import { ConfigError } from '../active-config.ts'

/** The text of the routing config; throws ConfigError when there is none to read. */
export async function readConfigFile(file: string): Promise<string> {
  try {
    return await readOperatorText(file)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new ConfigError(`The routing config ${file} cannot be read: ${why}`, { cause })
  }
}

/** Reads the files that a config names, from the folder of the config. */
export function configFileReader(file: string | undefined): (name: string) => string {
  return name => readRegular(resolve(dirname(file ?? '.'), name)).toString('utf8')
}
