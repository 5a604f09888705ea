import { constants } from 'node:fs'
import { access, readFile, realpath, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Client } from '@libsql/client/web'
import { namesProxy } from '../env/read-env.ts'
import { COMMIT_MS, type Db, type PrepareOptions, prepareDb } from '../sql/db.ts'
import { DbOpenError, dbFault } from '../sql/db-fault.ts'
import type { ServerClient } from '../sql/hrana/server-client.ts'
import { RESTORE } from '../sql/store-faults.ts'
import { makePrivate, takeFromOthers } from './operator-file.ts'

export interface OpenDbOptions {
  /** Token for a libSQL server; also used by a replica to reach its server. */
  token?: string
  /** Address of a libSQL server. The path then names a local, read-only copy that follows it. */
  syncUrl?: string
  synchronous?: 'full' | 'normal'
  readOnly?: boolean
  /** False: a file that is not there is refused, as it is where it would only be read. */
  create?: boolean
  /** See PrepareOptions. */
  checkpointPages?: number | undefined
}

/** Opens `:memory:`, `file:…`, a plain path, or a server at `http://`, `https://`, `libsql://`, `ws://`, `wss://`. Fails with a DbOpenError. */
export async function openDb(url: string, options: OpenDbOptions = {}): Promise<Db> {
  if (url.trim() === '')
    throw new DbOpenError('bad_url', 'The database address is empty: give a path, ":memory:" or a server URL.')
  if (url === ':memory:' || url.startsWith('file::memory:')) return openMemory(url, options)
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase()
  if (scheme === undefined || scheme === 'file')
    return openFile(scheme === 'file' ? filePath(url) : resolve(url), options)
  if (['http', 'https', 'libsql', 'ws', 'wss'].includes(scheme)) return openServer(url, options)
  throw new DbOpenError(
    'bad_url',
    `Cannot open a "${scheme}:" database: give a path, "file:", ":memory:", or a server at http:, https: or libsql:.`,
  )
}

async function openMemory(url: string, options: OpenDbOptions): Promise<Db> {
  if (options.syncUrl !== undefined)
    throw new DbOpenError('bad_url', 'A replica needs a file: give a path instead of ":memory:".')
  const { localClient } = await import('./local-client.ts')
  return prepareDb(localClient(url, { timeout: 5000 }), { ...options, kind: 'memory', name: url })
}

async function openFile(path: string, options: OpenDbOptions): Promise<Db> {
  const { token, syncUrl, synchronous, checkpointPages } = options
  const replica = syncUrl !== undefined
  const readOnly = replica || (options.readOnly ?? false)
  const isThere = await checkPath(path, {
    mustExist: !replica && (readOnly || options.create === false),
    writes: replica || !readOnly,
  })
  if (!readOnly) await refuseNetworkDisk(path)
  if (!replica) await refuseLoneLog(path)
  // The files beside it get the mode that it has. A copy of a server is created by the package, which takes no empty file.
  if (!isThere && !replica) makePrivate(path)
  const prepare: PrepareOptions = {
    kind: replica ? 'replica' : 'file',
    readOnly,
    name: path,
    checkpointPages,
    ...(synchronous && { synchronous }),
  }
  let client: Client | undefined
  try {
    client = replica
      ? await openReplica(path, syncUrl, token)
      : (await import('./local-client.ts')).localClient(path, { timeout: COMMIT_MS })
    const db = await prepareDb(client, prepare)
    if (replica || !readOnly) await Promise.all(['', '-wal', '-shm', '-info'].map(end => takeFromOthers(path + end)))
    return db
  } catch (error) {
    client?.close()
    throw replica ? replicaError(path, syncUrl, error) : fileError(path, error)
  }
}

/** A local copy that follows a server, which is the package's own business. */
async function openReplica(path: string, syncUrl: string, token: string | undefined): Promise<Client> {
  const { createClient } = await import('@libsql/client/sqlite3')
  const url = `file:${path.split('/').map(encodeURIComponent).join('/')}`
  const client = createClient({
    url,
    concurrency: 1,
    timeout: 5000,
    syncUrl,
    ...(token !== undefined && { authToken: token }),
  })
  try {
    await client.sync()
    return client
  } catch (error) {
    client.close()
    throw error
  }
}

async function openServer(url: string, { token, readOnly = false, syncUrl }: OpenDbOptions): Promise<Db> {
  const name = withoutSecrets(url)
  if (syncUrl !== undefined) {
    throw new DbOpenError(
      'bad_url',
      `A replica is a local file: give a path instead of ${name}, and the server as syncUrl.`,
    )
  }
  if (/^[^?#]*\/\/[^/?#]*@/.test(url)) {
    throw new DbOpenError(
      'bad_url',
      `The database address ${name} carries a user or password: leave it out and set a token.`,
    )
  }
  let client: ServerClient | undefined
  try {
    client = await openClient(url, token)
    return await prepareDb(client, { kind: 'remote', readOnly, name, writes: client.writes })
  } catch (error) {
    client?.close()
    throw serverError(name, error)
  }
}

async function openClient(url: string, token: string | undefined): Promise<ServerClient> {
  const [{ serverAddress }, { serverClient }] = await Promise.all([
    import('../sql/hrana/server-address.ts'),
    import('../sql/hrana/server-client.ts'),
  ])
  const address = serverAddress(url, token)
  const network = namesProxy(process.env) ? (await import('./proxy-agent.ts')).networkOf(process.env) : undefined
  const transport =
    address.url.startsWith('https:') || network?.ofUrl(new URL(address.url))
      ? (await import('../sql/hrana/fetch-transport.ts')).fetchTransport(address, network?.fetch)
      : await (await import('./pool-transport.ts')).poolTransport(address)
  return serverClient({ url: address.url, transport })
}

/** Whether there is a file. What the file system can tell in plain words; the driver says only "unable to open: 14" for all of it. */
async function checkPath(path: string, { mustExist, writes }: { mustExist: boolean; writes: boolean }) {
  const found = await stat(path).catch((error: unknown) => {
    const code = errnoOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new DbOpenError(
      'no_permission',
      `Cannot look at the database ${path} (${reason(error)}): change the owner or mode of its folder, or choose another path.`,
      { cause: error },
    )
  })
  const folder = dirname(path)
  if (found === undefined) {
    if (mustExist) throw new DbOpenError('missing', `There is no database at ${path}.`)
    const parent = await stat(folder).catch(() => undefined)
    if (!parent?.isDirectory()) {
      throw new DbOpenError(
        'missing',
        `Cannot open the database ${path}: the folder ${folder} does not exist; create it first.`,
      )
    }
  } else if (!found.isFile()) {
    const what = found.isDirectory() ? 'a folder' : 'not a regular file'
    throw new DbOpenError('not_a_file', `Cannot open the database ${path}: it is ${what}; give the path of a file.`)
  } else {
    await need(
      path,
      writes ? constants.R_OK | constants.W_OK : constants.R_OK,
      writes ? 'read and write' : 'read',
      path,
    )
  }
  // WAL keeps two files beside the database, so the folder must be writable as well.
  if (writes) await need(folder, constants.W_OK | constants.X_OK, 'create files in the folder of', path)
  return found !== undefined
}

/** SQLite takes a log beside no database, or beside an empty file, for a remainder and deletes it: the last commits, where the database was only moved away. */
export async function refuseLoneLog(path: string): Promise<void> {
  const sizeOf = (name: string) =>
    stat(name).then(
      ({ size }) => size,
      () => 0,
    )
  // In this order: a new database has its first page before it has a log.
  if ((await sizeOf(path)) > 0 || (await sizeOf(`${path}-wal`)) === 0 || (await sizeOf(path)) > 0) return
  throw new DbOpenError(
    'missing',
    `The database ${path} is missing or empty, and ${path}-wal has the last commits of one: put the database of that log back, or move the log away.`,
  )
}

/**
 * File systems that several machines have at once. Processes agree on a database's log by memory that they share, which is of one machine: on
 * another one a second process misses commits, and damages the file.
 */
const OF_A_NETWORK =
  /^(?:nfs4?|cifs|smb3|smbfs|ceph|lustre|gpfs|beegfs|afs|fuse\.(?:sshfs|rclone|s3fs|gcsfuse|mount-s3|mountpoint-s3|goofys|blobfuse2?|glusterfs|ceph|ceph-fuse|juicefs|seaweedfs|mfs|davfs2?))$/

/** The kind of network file system that a folder is on, by what Linux says of its mounts; undefined: it is on none that is known. */
export function networkDisk(folder: string, mounts: string): string | undefined {
  let [place, kind] = ['', '']
  for (const line of mounts.split('\n')) {
    const [mount = '', source = ''] = line.split(' - ')
    const at = (mount.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, octal) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    )
    const holds = folder === at || folder.startsWith(at === '/' ? at : `${at}/`)
    // Of several at one place the last one counts.
    if (at !== '' && holds && at.length >= place.length) [place, kind] = [at, source.split(' ')[0] ?? '']
  }
  return OF_A_NETWORK.test(kind) ? kind : undefined
}

export async function refuseNetworkDisk(path: string): Promise<void> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '')
  const kind = networkDisk(await realFolder(path), mounts)
  if (kind === undefined) return
  throw new DbOpenError(
    'network_disk',
    `The database ${path} is on a network file system (${kind}), where a second machine could open it too and damage it: keep it on a disk of this machine or a block volume, or use a libSQL server.`,
  )
}

/** Of a path, or of the nearest folder above it that is there. */
async function realFolder(path: string): Promise<string> {
  const folder = dirname(path)
  return realpath(folder).catch(error => (folder === path ? Promise.reject(error) : realFolder(folder)))
}

async function need(target: string, mode: number, verb: string, path: string) {
  await access(target, mode).catch((error: unknown) => {
    const says =
      errnoOf(error) === 'EROFS'
        ? `The file system of the database ${path} is read-only: make it writable, or copy the file and its -wal to another one and use that.`
        : `This account may not ${verb} the database ${path}: change its owner or mode, or choose another path.`
    throw new DbOpenError('no_permission', says, { cause: error })
  })
}

/** What SQLite's codes mean for a file that is opened; any other code is `missing`. */
const FILE_PROBLEMS: Record<string, [DbOpenError['problem'], (path: string, why: string) => string]> = {
  SQLITE_NOTADB: ['not_a_database', path => `${path} is not a database: give another path, or move that file away.`],
  SQLITE_CORRUPT: [
    'not_a_database',
    path => `The database ${path} is damaged, or its disk fails: look at the log of the machine, then ${RESTORE}.`,
  ],
  SQLITE_PERM: ['no_permission', notWritten],
  SQLITE_READONLY: ['no_permission', notWritten],
  SQLITE_AUTH: ['no_permission', notWritten],
  SQLITE_FULL: ['missing', path => `Cannot open the database ${path}: its disk is full; make room on it.`],
}

function notWritten(path: string, why: string): string {
  return `This account may not write the database ${path}: ${why}.`
}

function fileError(path: string, error: unknown): DbOpenError {
  if (error instanceof DbOpenError) return error
  const cause = { cause: error }
  const known = FILE_PROBLEMS[errnoOf(error) ?? '']
  if (known !== undefined) return new DbOpenError(known[0], known[1](path, reason(error)), cause)
  if (dbFault(error) === 'busy') {
    return new DbOpenError(
      'busy',
      `The database ${path} is locked by another process: stop that one, or try again.`,
      cause,
    )
  }
  return new DbOpenError('missing', `Cannot open the database ${path}: ${reason(error)}.`, cause)
}

function serverError(name: string, error: unknown): DbOpenError {
  if (error instanceof DbOpenError) return error
  const cause = { cause: error }
  const why = reason(error)
  if (/\b(401|403)\b|unauthor|forbidden|auth/i.test(why)) {
    return new DbOpenError('no_permission', `The database server at ${name} refused the token: set a valid one.`, cause)
  }
  if (isUntrusted(error)) {
    return new DbOpenError(
      'missing',
      `The certificate of the server at ${name} is refused (${why}): it has to be valid now, for that address, and of an authority that this machine or NODE_EXTRA_CA_CERTS trusts.`,
      cause,
    )
  }
  if (errnoOf(error)?.startsWith('URL_')) {
    return new DbOpenError('bad_url', `Cannot use the database address ${name}: ${why}.`, cause)
  }
  return new DbOpenError('missing', `Cannot reach a libSQL server at ${name} (${why}): is it running?`, cause)
}

/** Whether a certificate was refused, by the names that Node gives to its reasons. */
function isUntrusted(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (/CERT|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/.test(errnoOf(one) ?? '')) return true
  }
  return false
}

function replicaError(path: string, syncUrl: string, error: unknown): DbOpenError {
  if (error instanceof DbOpenError) return error
  if (/sync|connect|status:|http|fetch/i.test(reason(error))) return serverError(withoutSecrets(syncUrl), error)
  return fileError(path, error)
}

/** The innermost message, on one line: wrappers say "fetch failed" and keep the useful words in `cause`. */
function reason(error: unknown): string {
  let inner = error
  while (inner instanceof Error && inner.cause instanceof Error && inner.cause.message !== '') inner = inner.cause
  const message = inner instanceof Error ? inner.message : String(inner)
  const line = message.split('\n')[0] ?? message
  return (line.length > 160 ? `${line.slice(0, 160)}…` : line).replace(/\.$/, '')
}

function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

function filePath(url: string): string {
  const rest = url.slice('file:'.length)
  const [, host = '', path = rest] = /^\/\/([^/]*)(\/.*)$/.exec(rest) ?? []
  if (host !== '' && host !== 'localhost') {
    throw new DbOpenError(
      'bad_url',
      `Cannot open ${url}: a file address names no other host; write file:/absolute/path.db.`,
    )
  }
  if (/[?#]/.test(path))
    throw new DbOpenError('bad_url', `Cannot open ${url}: a file address takes no "?" or "#" part.`)
  try {
    return resolve(decodeURIComponent(path))
  } catch {
    return resolve(path)
  }
}

/** Addresses may carry a token in the query or a password before the host; neither belongs in a message. */
function withoutSecrets(url: string): string {
  return url.replace(/[?#].*$/, '').replace(/\/\/[^/@]*@/, '//')
}
