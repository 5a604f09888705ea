import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { EnvError } from '../env/read-env.ts'

/** What a file holds. A named pipe is refused: reading one waits for a writer that may never come. */
export function readRegular(path: string): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(file).isFile()) throw new EnvError(`${path} is a folder, a pipe or a device: name a file`)
    return readFileSync(file)
  } finally {
    closeSync(file)
  }
}

export const readRegularText = async (path: string): Promise<string> => readRegular(path).toString('utf8')
