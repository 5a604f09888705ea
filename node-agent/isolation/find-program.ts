import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'

/** Where a program is, by its path or by PATH. */
export async function findProgram(name: string, path = process.env.PATH ?? ''): Promise<string | undefined> {
  const places = isAbsolute(name) ? [name] : path.split(delimiter).map(folder => join(folder, name))
  for (const place of places) {
    if (
      await access(place, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return place
  }
  return undefined
}
