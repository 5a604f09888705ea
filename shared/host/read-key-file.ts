import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

/** What a file holds. A named pipe is refused: reading one waits for a writer that may never come. */
export function readKeyBytes(path: string): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${path} is a folder, a pipe or a device: name a file`)
    return readFileSync(file)
  } finally {
    closeSync(file)
  }
}

export const readKeyText = async (path: string): Promise<string> => readKeyBytes(path).toString('utf8')
