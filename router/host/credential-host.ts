import { createHash, randomUUID } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homeFolder } from '../../shared/host/operator-file.ts'
import type { CredentialHost, Vars } from '../cloud/credential-request.ts'

/** The files of this account, where programs of AWS and Google keep credentials. */
export function credentialHost(vars: Vars): CredentialHost {
  return {
    home: homeFolder(vars),
    readFile: path => readFile(path, 'utf8'),
    async writeFile(path, text) {
      // Put in its place whole: another program may read it at any time.
      const next = `${path}.${randomUUID()}`
      try {
        await writeFile(next, text, { mode: 0o600, flag: 'wx', flush: true })
        await rename(next, path)
      } catch (error) {
        await rm(next, { force: true })
        throw error
      }
    },
    sha1: text => createHash('sha1').update(text).digest('hex'),
  }
}
