import { chmod, open, stat } from 'node:fs/promises'

/** Makes the file, empty, for this account alone. Where that cannot be done, opening it fails with the reason. */
export async function makePrivate(path: string): Promise<void> {
  await open(path, 'a', 0o600).then(
    file => file.close(),
    () => undefined,
  )
}

/** Takes a file that is there from the other accounts of this machine. One that is not ours, or may not be changed, stays as it is. */
export async function takeFromOthers(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (found && (found.mode & 0o077) !== 0) await chmod(path, found.mode & 0o700).catch(() => undefined)
}
