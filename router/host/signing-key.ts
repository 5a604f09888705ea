import { randomBytes } from 'node:crypto'
import { link, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readOperatorText, syncPath, takeFromOthers } from '../../shared/host/operator-file.ts'
import { fromBase64, toBase64 } from '../../shared/sign/bytes.ts'
import { type Signer, signer } from '../../shared/sign/ed25519.ts'

/** The signing key cannot be used. The message is one sentence for the person at the terminal and never repeats the key. */
export class SigningKeyError extends Error {
  override name = 'SigningKeyError'
}

export interface SigningKeyOptions {
  /** ROUTER_SIGNING_KEY: base64 of 32 bytes. */
  key?: string | undefined
  /** ROUTER_SIGNING_KEY_FILE: a file that holds the same. */
  keyFile?: string | undefined
  /** Path of a local store, beside which a key is made when none is given. */
  dbPath?: string | undefined
}

/** The key that signs checkpoints (docs/spec/proof.md). Undefined when none is given and there is no file to keep one beside. */
export async function readSigningKey({ key, keyFile, dbPath }: SigningKeyOptions): Promise<Signer | undefined> {
  if (key !== undefined && key !== '') return fromText(key, 'ROUTER_SIGNING_KEY')
  if (keyFile !== undefined && keyFile !== '') {
    const text = await readOperatorText(keyFile).catch((cause: unknown) => {
      throw new SigningKeyError(`ROUTER_SIGNING_KEY_FILE names ${keyFile}, which cannot be read.`, { cause })
    })
    return fromText(text, keyFile)
  }
  if (dbPath === undefined) return undefined
  const path = `${dbPath}.key`
  const text = (await readIfThere(path)) ?? (await make(path))
  await takeFromOthers(path)
  return fromText(text, path)
}

async function readIfThere(path: string): Promise<string | undefined> {
  return readOperatorText(path).catch((cause: unknown) => {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw new SigningKeyError(`The signing key ${path} cannot be read: make it readable for this account.`, { cause })
  })
}

/** Writes the key whole before it gets its name, and never over another one: of two processes that start together, both use the first. */
async function make(path: string): Promise<string> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(`${toBase64(randomBytes(32))}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    await link(temporary, path).catch((error: unknown) => {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    })
    await syncPath(dirname(path))
    return await readOperatorText(path)
  } catch (cause) {
    throw new SigningKeyError(
      `A signing key cannot be made at ${path}: set ROUTER_SIGNING_KEY, or make the folder writable.`,
      {
        cause,
      },
    )
  } finally {
    await rm(temporary, { force: true })
  }
}

async function fromText(text: string, source: string): Promise<Signer> {
  let seed: Uint8Array<ArrayBuffer>
  try {
    seed = fromBase64(text.trim())
  } catch {
    throw new SigningKeyError(`${source} expected base64 of 32 bytes, got text that is no base64.`)
  }
  if (seed.length !== 32) throw new SigningKeyError(`${source} expected base64 of 32 bytes, got ${seed.length} bytes.`)
  return signer(seed)
}
