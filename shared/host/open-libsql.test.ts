import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { opensslAvailable, selfSigned } from '../../tests/backends/certificate.ts'
import { DbOpenError } from '../sql/db-fault.ts'
import { networkDisk, type OpenDbOptions, openDb } from './open-libsql.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-open-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function failure(url: string, options?: OpenDbOptions): Promise<DbOpenError> {
  const thrown = await openDb(url, options).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(thrown instanceof DbOpenError)) throw new Error(`expected a DbOpenError for ${url}, got ${String(thrown)}`)
  expect(thrown.message.split('\n')).toHaveLength(1)
  return thrown
}

/** SQLite's shared lock, at its place in the file: a reader elsewhere that finds none held takes itself for the last one and removes the log. */
async function sharedLock(path: string): Promise<boolean> {
  const { ino } = await stat(path)
  const locks = await readFile('/proc/locks', 'utf8')
  return locks.split('\n').some(line => line.includes(`:${ino} 1073741826`) && line.includes(` ${process.pid} `))
}

describe('a network file system', () => {
  const line = (place: string, kind: string) =>
    `43 27 0:39 / ${place} rw,relatime shared:7 - ${kind} server:/${kind} rw,user_id=0`
  const mounts = [
    line('/', 'ext4'),
    line('/data', 'nfs4'),
    line('/data/local', 'xfs'),
    line('/data/with\\040space', 'cifs'),
    line('/over', 'nfs'),
    line('/over', 'ext4'),
    line('/bucket', 'fuse.s3fs'),
    line('/mine', 'fuse.gocryptfs'),
    line('/wsl', '9p'),
  ].join('\n')

  test.each([
    ['/data', 'nfs4'],
    ['/data/deeper', 'nfs4'],
    ['/data/local/deeper', undefined],
    ['/data/with space', 'cifs'],
    ['/database', undefined],
    ['/over', undefined],
    ['/bucket/a', 'fuse.s3fs'],
    ['/mine', undefined],
    ['/wsl', undefined],
    ['/', undefined],
  ])('is known for what is mounted at %s', (folder, kind) => {
    expect(networkDisk(folder, mounts)).toBe(kind)
    expect(networkDisk(folder, '')).toBeUndefined()
  })
})

describe('opening a file', () => {
  test.runIf(process.platform === 'linux')(
    'keeps the lock that the store needs, however many open it at once',
    async () => {
      for (let n = 0; n < 20; n++) {
        const path = join(folder, `at-once-${n}.db`)
        const all = await Promise.all(Array.from({ length: 12 }, () => openDb(path)))
        await all[0]?.execute('create table t (a)')
        expect(await sharedLock(path), `opening ${n}`).toBe(true)
        for (const db of all) db.close()
      }
    },
  )

  test('works by path and by file address, also with characters that mean something in an address', async () => {
    const path = join(folder, 'a b#c?d%20é.db')
    const db = await openDb(path)
    await db.execute('create table t (a)')
    db.close()
    expect((await stat(path)).isFile()).toBe(true)
    const again = await openDb(`file:${encodeURI(path).replaceAll('#', '%23').replaceAll('?', '%3F')}`)
    expect((await again.execute('select count(*) as n from t')).rows[0]?.n).toBe(0)
    again.close()
  })

  const modes = async (path: string) =>
    Promise.all(['', '-wal', '-shm'].map(async end => (await stat(path + end)).mode & 0o777))

  test('writes nothing to a store that is there: it is opened on a full disk as well', async () => {
    const path = join(folder, 'full.db')
    const db = await openDb(path)
    await db.write(['create table t (a integer) strict'])
    const log = await readFile(`${path}-wal`)
    const second = await openDb(path)
    await second.close()
    expect(await readFile(`${path}-wal`)).toEqual(log)
    await db.close()
  })

  test('deletes no log whose database was moved away or emptied: opened once that is back, it has its last commits', async () => {
    const path = join(folder, 'lone.db')
    const db = await openDb(path)
    await db.write(['create table t (a integer) strict', 'insert into t values (7)'])
    // As a kill leaves them.
    const [file, log] = [await readFile(path), await readFile(`${path}-wal`)]
    db.close()
    await writeFile(`${path}-wal`, log)
    for (const leave of [() => rm(path), () => writeFile(path, '')]) {
      await leave()
      expect(await failure(path)).toMatchObject({ problem: 'missing', message: expect.stringContaining(`${path}-wal`) })
    }
    expect((await failure(path, { readOnly: true })).message).toContain(`${path}-wal`)
    await writeFile(path, file)
    const again = await openDb(path)
    expect((await again.execute('select a from t')).rows[0]?.a).toBe(7)
    again.close()
  })

  test('makes files that no other account may read, and takes away what an earlier version let them', async () => {
    const path = join(folder, 'private.db')
    const first = await openDb(path)
    await first.execute('create table t (a)')
    expect(await modes(path)).toEqual([0o600, 0o600, 0o600])
    for (const end of ['', '-wal', '-shm']) await chmod(path + end, 0o664)
    const looking = await openDb(path, { readOnly: true })
    expect(await modes(path)).toEqual([0o664, 0o664, 0o664])
    looking.close()
    const second = await openDb(path)
    await second.execute('insert into t values (1)')
    expect(await modes(path)).toEqual([0o600, 0o600, 0o600])
    for (const one of [first, second]) one.close()
  })

  test.skipIf(process.getuid?.() !== 0)(
    'opens a file of another account that it may write to, and leaves its mode',
    async () => {
      const shared = join(folder, 'shared')
      await mkdir(shared)
      await chmod(folder, 0o755)
      await chmod(shared, 0o777)
      const path = join(shared, 'theirs.db')
      ;(await openDb(path)).close()
      for (const name of await readdir(shared)) await chmod(join(shared, name), 0o666)
      const module = new URL('open-libsql.ts', import.meta.url).href
      const program = `const db = await (await import('${module}')).openDb('${path}'); await db.execute('create table t (a)'); db.close()`
      const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
        uid: 65534,
        gid: 65534,
      })
      expect([String(stderr), status]).toEqual(['', 0])
      expect((await stat(path)).mode & 0o777).toBe(0o666)
    },
  )

  test('names the path when it is a folder', async () => {
    const error = await failure(folder)
    expect(error).toMatchObject({
      problem: 'not_a_file',
      message: `Cannot open the database ${folder}: it is a folder; give the path of a file.`,
    })
  })

  test('names the folder that is missing', async () => {
    const error = await failure(join(folder, 'no', 'x.db'))
    expect(error.problem).toBe('missing')
    expect(error.message).toContain(`the folder ${join(folder, 'no')} does not exist`)
  })

  test('leaves a file that is no database as it is', async () => {
    const path = join(folder, 'notes.txt')
    await writeFile(path, 'not a database\n'.repeat(300))
    const before = await readFile(path)
    expect(await failure(path)).toMatchObject({ problem: 'not_a_database', message: expect.stringContaining(path) })
    expect(await readFile(path)).toEqual(before)
  })

  test('says so when the account may not write there', async () => {
    const closed = join(folder, 'closed')
    await mkdir(closed)
    const path = join(closed, 'x.db')
    await writeFile(path, '')
    await chmod(path, 0o444)
    await chmod(closed, 0o555)
    await chmod(folder, 0o755)
    // The superuser may write anywhere, so the attempt is made by an account that may not.
    const script = `import { openDb } from ${JSON.stringify(new URL('./open-libsql.ts', import.meta.url).href)}
await openDb(${JSON.stringify(path)}).then(() => console.log('opened'), error => console.log(error.name, error.problem, error.message))`
    const asOther = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      ...asOther,
    })
    await chmod(closed, 0o755)
    expect(stdout).toBe(
      `DbOpenError no_permission This account may not read and write the database ${path}: change its owner or mode, or choose another path.\n`,
    )
  })

  test('read-only refuses writes in the engine and never creates a file', async () => {
    const path = join(folder, 'read.db')
    expect((await failure(path, { readOnly: true })).problem).toBe('missing')
    const writer = await openDb(path)
    await writer.execute('create table t (a)')
    const reader = await openDb(path, { readOnly: true })
    await writer.execute('insert into t values (1)')
    expect((await reader.execute('select count(*) as n from t')).rows[0]?.n).toBe(1)
    await expect(reader.execute('insert into t values (2)')).rejects.toThrow(/readonly/i)
    // A failure and a reconnect must not lose the guard.
    await reader.client.reconnect()
    await expect(reader.execute('insert into t values (2)')).rejects.toThrow(/readonly/i)
    reader.close()
    writer.close()
  })
})

describe('opening other things', () => {
  test('memory survives batches, transactions and concurrent statements', async () => {
    const db = await openDb(':memory:')
    await db.write(['create table t (a)', 'insert into t values (1)'])
    const transaction = await db.client.transaction('write')
    await transaction.execute('insert into t values (2)')
    await transaction.commit()
    await Promise.all([3, 4, 5].map(n => db.execute(`insert into t values (${n})`)))
    expect((await db.execute('select count(*) as n from t')).rows[0]?.n).toBe(5)
    db.close()
  })

  test('a server that is not there is named without its secrets', async () => {
    const error = await failure('http://127.0.0.1:9?authToken=hush')
    expect(error.message).toMatch(/^Cannot reach a libSQL server at http:\/\/127\.0\.0\.1:9 /)
    expect(error.message).not.toContain('hush')
    const withUser = await failure('http://user:hush@127.0.0.1:9')
    expect(withUser.message).toBe(
      'The database address http://127.0.0.1:9 carries a user or password: leave it out and set a token.',
    )
  })

  test('a server that refuses the token, or is none, is named with what to do', async () => {
    let status = 401
    const server = createHttpServer((_, response) => response.writeHead(status).end('{"error":"Unauthorized"}'))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect((await failure(url, { token: 'hush' })).message).toBe(
      `The database server at ${url} refused the token: set a valid one.`,
    )
    status = 404
    expect((await failure(url)).message).toMatch(/no libSQL server that speaks Hrana 3/)
    server.close()
  })

  test.runIf(opensslAvailable())('a server whose certificate is not for its name is not spoken to', async () => {
    const { cert, key } = selfSigned(folder, 'elsewhere.example')
    const server = createTlsServer({ cert: await readFile(cert), key: await readFile(key) }, () => {
      throw new Error('nothing is sent to it')
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    const error = await failure(url, { token: 'hush' })
    expect(error.message).toMatch(
      /^The certificate of the server at https:\/\/127\.0\.0\.1:\d+ is refused \(.+\): it has to be valid now/,
    )
    server.close()
  })

  test('a replica whose server is not there names the server', async () => {
    const error = await failure(join(folder, 'replica.db'), { syncUrl: 'http://127.0.0.1:9' })
    expect(error.message).toMatch(/^Cannot reach a libSQL server at http:\/\/127\.0\.0\.1:9 /)
  })

  test.each([
    ['', /is empty/],
    ['postgres://localhost/x', /Cannot open a "postgres:" database/],
    ['file://elsewhere/x.db', /names no other host/],
    ['file:x.db?mode=ro', /takes no "\?"/],
  ])('the address "%s" is refused', async (url, message) => {
    const error = await failure(url)
    expect(error.problem).toBe('bad_url')
    expect(error.message).toMatch(message)
  })

  test('a replica needs a local file', async () => {
    expect((await failure(':memory:', { syncUrl: 'http://127.0.0.1:9' })).message).toMatch(/needs a file/)
    expect((await failure('http://127.0.0.1:9', { syncUrl: 'http://127.0.0.1:9' })).message).toMatch(/is a local file/)
  })
})
